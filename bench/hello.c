/*
 * hello.c - the least a static program can do: the yardstick for start-up time
 */
#include <unistd.h>

int main(void)
{
	return write(STDOUT_FILENO, "hello\n", 6) == 6 ? 0 : 1;
}

/*
 * hello.c - a minimal static program: the baseline for start-up times
 */
#include <unistd.h>

int main(void)
{
	return write(STDOUT_FILENO, "hello\n", 6) == 6 ? 0 : 1;
}

/*
 * writ-signer - signs statements; installed by `writ signer install`, it keeps the log as well
 *
 * Started by writ, never by hand: descriptor 3 is what signer/signer.h says. Exit code 0
 * when it has done what it was asked for.
 */
#include <unistd.h>

#include "signer/signer.h"

#include "base/banned.h"

int main(int argc, char **argv)
{
	/* Confined by now: what libraries do when a program ends could be refused. */
	_exit(signer_main(argc, argv));
}

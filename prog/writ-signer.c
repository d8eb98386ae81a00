/*
 * writ-signer - signs statements; installed by `writ signer install`, it keeps the log as well
 *
 * Started by writ, never by hand: descriptor 3 is what signer/signer.h says. Exit code 0
 * when it has done what it was asked for.
 */
#include "signer/signer.h"

#include "base/banned.h"

int main(int argc, char **argv)
{
	return signer_main(argc, argv);
}

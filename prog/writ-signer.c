/*
 * writ-signer - signs statements; as installed by `writ signer install`, also keeps the log
 *
 * Started by writ, not by users. signer/signer.h describes its argument and its descriptors 3 and
 * 4. Exits with 0 after it has done what the argument requests.
 */
#include <unistd.h>

#include "signer/signer.h"

#include "base/banned.h"

int main(int argc, char **argv)
{
	/*
	 * The process is confined now, and exit handlers of libraries might make forbidden system
	 * calls. Skip them.
	 */
	_exit(signer_main(argc, argv));
}

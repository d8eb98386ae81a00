#include "lint/check_priv.h"

#include "base/banned.h"

void lint_srt(struct check *c, const struct node *root)
{
	const struct node *fs = lint_get(root, "filesystem");

	lint_sandbox_network(c, lint_get(root, "network"));
	lint_sandbox_writes(c, lint_get(fs, "allowWrite"));
	lint_sandbox_reads(c, fs ? lint_key(c, fs) : root, fs, lint_get(root, "credentials"), NULL);
	lint_sandbox_weakened(c, root);
}

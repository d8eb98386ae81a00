#include "lint/check_priv.h"

#include "base/banned.h"

void lint_srt(struct check *c, const struct node *root)
{
	static const char *const weaker[] = { "enableWeakerNestedSandbox",
					      "enableWeakerNetworkIsolation",
					      "allowNestedUserNamespaces", "allowAppleEvents" };
	const struct node *fs = lint_get(root, "filesystem");

	lint_sandbox_network(c, lint_get(root, "network"));
	lint_sandbox_writes(c, lint_get(fs, "allowWrite"));
	lint_sandbox_reads(c, fs ? lint_key(c, fs) : root, fs, lint_get(root, "credentials"), NULL);
	if (lint_true(lint_get(fs, "disabled")))
		lint_found(c, R_SANDBOX_WEAKENED, lint_get(fs, "disabled"),
			   SV("filesystem.disabled"));
	for (size_t i = 0; i < ARRAY_LEN(weaker); i++)
		if (lint_true(lint_get(root, weaker[i])))
			lint_found(c, R_SANDBOX_WEAKENED, lint_get(root, weaker[i]),
				   sv_from(weaker[i]));
}

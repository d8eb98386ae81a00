#include "cli/cli.h"

#include "codec/json.h"

#include "base/banned.h"

/* Returns the purpose of a profile: its first comment line, up to the first period or colon. */
static struct sv purpose(const struct policy_profile *p)
{
	struct sv rest = { p->text, p->len };

	while (rest.n) {
		struct sv line = sv_cut(&rest, '\n');

		if (!sv_starts(line, SV("# ")))
			continue;
		for (size_t i = 0; i < line.n; i++)
			if ((line.p[i] == '.' || line.p[i] == ':') &&
			    (i + 1 == line.n || line.p[i + 1] == ' '))
				line.n = i;
		return sv_skip(line, 2);
	}
	return SV("");
}

static int list(struct args *a)
{
	struct buf b = BUF_INIT(65536);
	const bool json = a->given[OPT_JSON];

	if (json)
		buf_ch(&b, '[');
	for (const struct policy_profile *p = policy_profiles; p->name; p++) {
		if (json) {
			buf_fmt(&b,
				"%s{\"name\":\"%s\",\"purpose\":", p == policy_profiles ? "" : ",",
				p->name);
			json_put_str(&b, purpose(p));
			buf_ch(&b, '}');
		} else {
			buf_fmt(&b, "%-17s" SV_FMT "\n", p->name, SV_ARG(purpose(p)));
		}
	}
	if (json)
		buf_str(&b, "]\n");
	return cli_out(&b, EXIT_DONE);
}

int cmd_profile(struct args *a)
{
	const char *what = a->operands.n ? a->operands.v[0] : "list";
	const struct policy_profile *p;
	struct buf b = BUF_INIT(65536);

	if (sv_is(sv_from(what), "list") && a->operands.n <= 1)
		return list(a);
	if (!sv_is(sv_from(what), "show") || a->operands.n != 2)
		return cli_end(EXIT_FAILED, "writ profile list, or writ profile show NAME");
	p = lang_profile_find(sv_from(a->operands.v[1]));
	if (!p)
		return cli_end(EXIT_FAILED, "no profile \"%s\"; writ profile list shows the names",
			       a->operands.v[1]);
	if (a->given[OPT_JSON]) {
		buf_fmt(&b, "{\"name\":\"%s\",\"text\":", p->name);
		json_put_str(&b, (struct sv){ p->text, p->len });
		buf_str(&b, "}\n");
	} else {
		buf_add(&b, p->text, p->len);
	}
	return cli_out(&b, EXIT_DONE);
}

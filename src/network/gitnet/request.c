#include <string.h>

#include "cap/component.h"
#include "gitnet/git.h"

#include "base/banned.h"

/* --- spellings of repositories --- */

/* Parts of a repository URL such as "ssh://git@host:22/a/b.git". */
struct parts {
	bool ssh;
	struct sv host, port, path; /* @host includes the user; @path includes its leading slash */
};

static bool cut_name(struct sv name, struct parts *ret)
{
	struct sv rest;
	size_t slash, colon;

	ret->ssh = sv_starts(name, SV("ssh://"));
	rest = sv_skip(name, ret->ssh ? 6 : 8);
	slash = sv_find(rest, '/');
	ret->path = sv_skip(rest, slash);
	rest = sv_sub(rest, 0, slash);
	colon = sv_rfind(rest, ':');
	if (slash == SIZE_MAX || colon == SIZE_MAX)
		return false;
	ret->host = sv_sub(rest, 0, colon);
	ret->port = sv_skip(rest, colon + 1);
	return true;
}

static bool spell(struct git_repo *to, const char *text)
{
	if (text)
		to->spell[to->spell_n++] = sv_from(text);
	return text != NULL;
}

/*
 * Tests whether the rule spells the repository in scp form. "host:path" is relative to the home
 * directory, "ssh://host/path" is not, so the operator's git must dial the form that the rule uses.
 */
static bool is_scp_form(struct sv rule, struct sv scp)
{
	for (size_t i = 0; i + scp.n <= rule.n; i++)
		if (sv_starts(sv_skip(rule, i), scp) && (i == 0 || rule.p[i - 1] != '/'))
			return true;
	return false;
}

static int describe(struct arena *a, struct sv name, struct sv rule, struct git_repo *ret,
		    struct writ_err *err)
{
	struct git_repo to = { .name = name };
	struct parts p;
	const char *scheme;
	bool ok;

	if (!cut_name(name, &p))
		return writ_fail(err, WRIT_E_BUG, 0, "a repository without a host");
	scheme = p.ssh ? "ssh" : "https";
	ok = spell(&to, arena_fmt(a, "%s://" SV_FMT ":" SV_FMT SV_FMT, scheme, SV_ARG(p.host),
				  SV_ARG(p.port), SV_ARG(p.path)));
	to.dial = to.spell[0];
	if (ok && sv_is(p.port, p.ssh ? "22" : "443")) {
		ok = spell(&to, arena_fmt(a, "%s://" SV_FMT SV_FMT, scheme, SV_ARG(p.host),
					  SV_ARG(p.path)));
		to.dial = to.spell[1];
	}
	/* The scp form has no %-escapes, so a path with '%' cannot be spelled in scp form. */
	if (ok && p.ssh && to.spell_n == 2 && sv_find(p.path, '%') == SIZE_MAX) {
		ok = spell(&to, arena_fmt(a, SV_FMT ":" SV_FMT, SV_ARG(p.host),
					  SV_ARG(sv_skip(p.path, 1))));
		if (ok && is_scp_form(rule, to.spell[2]))
			to.dial = to.spell[2];
	}
	if (!ok)
		return writ_nomem(err);
	*ret = to;
	return 0;
}

int gitnet_repos_find(struct arena *a, const struct cap_set *set, git_repos *ret,
		      struct writ_err *err)
{
	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap_entry *e = &set->caps.v[i];
		struct git_repo *to;
		bool known = false;

		for (size_t k = 0; k < ret->n; k++)
			known |= sv_eq(ret->v[k].name, e->cap.repo);
		if (e->cap.action != CAP_GIT_USE || known)
			continue;
		to = vec_push(a, ret);
		if (!to)
			return writ_nomem(err);
		if (describe(a, e->cap.repo,
			     e->rule < set->rules.n ? set->rules.v[e->rule].text : SV(""), to,
			     err) < 0)
			return err->code;
	}
	return 0;
}

/* Tests whether @spelled equals @text once each %XX in @spelled is decoded. */
static bool same_decoded(struct sv spelled, struct sv text)
{
	size_t i = 0, k = 0;

	for (; i < spelled.n && k < text.n; i++, k++) {
		int c = (unsigned char)spelled.p[i];

		if (c == '%' && i + 2 < spelled.n && sv_hex(spelled.p[i + 1]) >= 0 &&
		    sv_hex(spelled.p[i + 2]) >= 0) {
			c = sv_hex(spelled.p[i + 1]) * 16 + sv_hex(spelled.p[i + 2]);
			i += 2;
		}
		if (c != (unsigned char)text.p[k])
			return false;
	}
	return i == spelled.n && k == text.n;
}

const struct git_repo *gitnet_repo_at(const git_repos *repos, struct sv path)
{
	for (size_t i = 0; i < repos->n; i++)
		for (size_t k = 0; k < repos->v[i].spell_n; k++)
			if (same_decoded(repos->v[i].spell[k], path))
				return &repos->v[i];
	return NULL;
}

/* --- requests --- */

size_t gitnet_request_length(const char head[static 4])
{
	size_t n = 0;

	for (int i = 0; i < 4; i++) {
		if (sv_hex(head[i]) < 0)
			return 0;
		n = n * 16 + (size_t)sv_hex(head[i]);
	}
	return n > 4 && n <= GIT_REQUEST_MAX ? n : 0;
}

/*
 * Parses the parameters after the path: "host=...", an empty parameter, "version=2"; each parameter
 * ends with NUL.
 */
static bool parse_more(struct sv rest, struct git_request *ret)
{
	while (rest.n) {
		struct sv word;

		if (rest.p[rest.n - 1] != 0)
			return false;
		word = sv_cut(&rest, '\0');
		if (sv_is(word, "version=2"))
			ret->version = 2;
		else if (sv_is(word, "version=1"))
			ret->version = 1;
	}
	return true;
}

bool gitnet_request_parse(struct sv bytes, struct git_request *ret)
{
	struct git_request to = { 0 };
	struct sv rest, verb;

	if (bytes.n < 4 || gitnet_request_length(bytes.p) != bytes.n)
		return false;
	rest = sv_skip(bytes, 4);
	if (sv_find(rest, '\0') == SIZE_MAX)
		return false;
	to.path = sv_cut(&rest, '\0');
	verb = sv_cut(&to.path, ' ');
	to.push = sv_is(verb, "git-receive-pack");
	if ((!to.push && !sv_is(verb, "git-upload-pack")) || !sv_starts(to.path, SV("/")))
		return false;
	to.path = sv_skip(to.path, 1);
	for (size_t i = 0; i < to.path.n; i++)
		if ((unsigned char)to.path.p[i] < 0x20 || to.path.p[i] == 0x7f)
			return false;
	if (!parse_more(rest, &to))
		return false;
	*ret = to;
	return true;
}

/* --- pushed refs --- */

static bool is_id(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (sv_hex_lower(s.p[i]) < 0)
			return false;
	return s.n == 40;
}

static bool is_zero(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '0')
			return false;
	return true;
}

bool gitnet_ref_is_fine(struct sv ref)
{
	struct sv rest = ref;

	if (ref.n > 250 || !sv_starts(ref, SV("refs/")) || sv_ends(ref, SV("/")) ||
	    sv_ends(ref, SV(".")))
		return false;
	for (size_t i = 0; i < ref.n; i++) {
		const unsigned char c = (unsigned char)ref.p[i];

		if (c <= 0x20 || c == 0x7f || strchr("~^:?*[\\", c) ||
		    (i && c == '.' && ref.p[i - 1] == '.') ||
		    (i && c == '{' && ref.p[i - 1] == '@'))
			return false;
	}
	while (rest.n) {
		const struct sv part = sv_cut(&rest, '/');

		if (part.n == 0 || part.p[0] == '.' || part.p[0] == '-' ||
		    sv_ends(part, SV(".lock")))
			return false;
	}
	return true;
}

bool gitnet_update_parse(struct sv line, struct git_update *ret)
{
	struct git_update to = { 0 };

	to.old = sv_cut(&line, ' ');
	to.new = sv_cut(&line, ' ');
	to.ref = line;
	to.create = is_zero(to.old);
	to.remove = is_zero(to.new);
	if (!is_id(to.old) || !is_id(to.new) || !gitnet_ref_is_fine(to.ref))
		return false;
	*ret = to;
	return true;
}

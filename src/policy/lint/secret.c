#include <string.h>

#include "lint/check_priv.h"

#include "base/banned.h"

enum { NAME_MAX_BYTES = 96, VALUE_MAX_BYTES = 4096 };

/* Prefixes of known key formats; a text shorter than @min is not a key. */
static const struct {
	const char *prefix;
	size_t min;
} issued[] = {
	{ "sk-ant-", 20 }, { "sk-proj-", 20 }, { "sk-or-", 20 }, { "sk-", 24 }, { "sk_live_", 20 },
	{ "rk_live_", 20 }, { "sk_test_", 20 }, { "ghp_", 20 }, { "gho_", 20 }, { "ghu_", 20 },
	{ "ghs_", 20 }, { "ghr_", 20 }, { "github_pat_", 24 }, { "glpat-", 20 }, { "xoxb-", 20 },
	{ "xoxp-", 20 }, { "xoxa-", 20 }, { "xapp-", 20 }, { "AKIA", 20 }, { "ASIA", 20 },
	{ "AIza", 30 }, { "ya29.", 24 }, { "npm_", 24 }, { "hf_", 20 }, { "dckr_pat_", 20 },
	{ "SG.", 30 }, { "shpat_", 20 }, { "dop_v1_", 24 }, { "tvly-", 20 }, { "gsk_", 24 },
	{ "r8_", 24 }, { "xai-", 24 }, { "pplx-", 24 }, { "lin_api_", 20 },
	{ "AGE-SECRET-KEY-1", 30 }, { "hvs.", 20 }, { "whsec_", 20 }, { "e2b_", 24 },
	{ "nvapi-", 24 }, { "fc-", 30 },
};

static const char *const placeholders[] = {
	"your",	  "xxxx",   "example", "changeme", "change-me", "change_me", "placeholder", "dummy",
	"redact", "insert", "replace", "sample",   "fake",	"...",	     "****",     NULL,
};

static const char *const name_ends[] = {
	"_key", "_token",  "_secret",	  "_password",	  "_passwd",
	"_pat", "_apikey", "_passphrase", "_credentials", NULL,
};

static const char *const name_whole[] = {
	"token",      "secret",	   "password",	  "passwd",	  "apikey",
	"authtoken",  "apitoken",  "accesstoken", "clientsecret", "authorization",
	"passphrase", "secretkey", NULL,
};

static const char *const name_harmless[] = {
	"public_key",	 "primary_key", "foreign_key",	   "sort_key",
	"partition_key", "cache_key",	"publishable_key", NULL,
};

/*
 * Converts @name to lower case with underscores, so that --api-key, apiKey and API_KEY compare
 * equal.
 */
static struct sv fold_name(struct sv name, char out[NAME_MAX_BYTES])
{
	size_t n = 0;

	while (name.n && name.p[0] == '-')
		name = sv_skip(name, 1);
	for (size_t i = 0; i < name.n && n + 2 < NAME_MAX_BYTES; i++) {
		char ch = name.p[i];
		const bool upper = ch >= 'A' && ch <= 'Z';

		if (upper && i && name.p[i - 1] >= 'a' && name.p[i - 1] <= 'z')
			out[n++] = '_';
		if (ch == '-' || ch == '.')
			ch = '_';
		out[n++] = upper ? (char)(ch + 32) : ch;
	}
	return (struct sv){ out, n };
}

bool lint_secret_name(struct sv name)
{
	char room[NAME_MAX_BYTES];
	const struct sv s = fold_name(name, room);

	return !lint_any(s, name_harmless, lint_ends) &&
	       (lint_in(s, name_whole) || lint_any(s, name_ends, lint_ends));
}

static bool is_placeholder(struct sv v)
{
	size_t same = 1;

	if (!v.n || v.p[0] == '<' || v.p[0] == '[')
		return true;
	while (same < v.n && v.p[same] == v.p[0])
		same++;
	return same == v.n || lint_any(v, placeholders, lint_has);
}

static bool all_token(struct sv v)
{
	return v.n > 0 && sv_is_alnum(v, "_-.+/=");
}

static bool token_char(char ch)
{
	return all_token((struct sv){ &ch, 1 });
}

static bool is_issued(struct sv v)
{
	size_t dots = 0;

	if (lint_has(v, "private key-----"))
		return true;
	if (!all_token(v))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(issued); i++)
		if (v.n >= issued[i].min && lint_starts(v, issued[i].prefix))
			return true;
	for (size_t i = 0; i < v.n; i++)
		dots += v.p[i] == '.';
	return lint_starts(v, "eyJ") && dots == 2 && v.n >= 40; /* is @v a JSON web token? */
}

/*
 * Returns log2 of @v in units of 1/256, linear between powers of two; accurate to a tenth of a bit.
 */
static uint32_t log2_q8(uint32_t v)
{
	const uint32_t top = 31u - (uint32_t)__builtin_clz(v);

	return (top << 8) + ((v << 8) >> top) - 256;
}

/*
 * Does @v look random: letters of both cases, digits, and at least four bits of entropy per byte?
 */
static bool is_random(struct sv v)
{
	uint32_t count[256] = { 0 }, lower = 0, upper = 0, digit = 0, weight = 0;

	if (v.n < 20 || v.n > 256 || !all_token(v))
		return false;
	for (size_t i = 0; i < v.n; i++) {
		count[(uint8_t)v.p[i]]++;
		lower += v.p[i] >= 'a' && v.p[i] <= 'z';
		upper += v.p[i] >= 'A' && v.p[i] <= 'Z';
		digit += v.p[i] >= '0' && v.p[i] <= '9';
	}
	if (lower < 3 || upper < 3 || digit < 3)
		return false;
	if (count['.'] || count['-'] > 2 || (count['/'] && !count['+'] && !count['=']))
		return false; /* the value looks like a host name, a slug or a path */
	for (size_t i = 0; i < ARRAY_LEN(count); i++)
		if (count[i])
			weight += count[i] * log2_q8(count[i]);
	return log2_q8((uint32_t)v.n) - weight / (uint32_t)v.n >= 4 * 256;
}

/* Returns the password in a URL "scheme://user:password@host", or an empty view. */
static struct sv url_password(struct sv v)
{
	size_t at, colon, i;

	for (i = 0; i + 3 < v.n && memcmp(v.p + i, "://", 3) != 0; i++)
		;
	if (i + 3 >= v.n)
		return SV("");
	v = sv_skip(v, i + 3);
	for (i = 0; i < v.n && !strchr("/?#\"' \t", v.p[i]); i++)
		;
	v = sv_sub(v, 0, i);
	at = sv_rfind(v, '@');
	colon = sv_find(v, ':');
	if (at == SIZE_MAX || colon == SIZE_MAX || colon >= at)
		return SV("");
	return sv_sub(v, colon + 1, at - colon - 1);
}

/* Is @value in a known key format, or of high entropy? */
static bool is_secret_value(struct sv value)
{
	struct sv v = sv_trim(value);

	if (v.n > VALUE_MAX_BYTES)
		v.n = VALUE_MAX_BYTES;
	if (url_password(v).n)
		v = url_password(v);
	else if (!is_issued(v) && !is_random(v))
		return false;
	return !lint_is_reference(v) && !is_placeholder(v);
}

/*
 * Is @v, the value of a secret-like name, a literal? Excludes references, placeholders, paths,
 * booleans and short numbers.
 */
static bool is_literal(struct sv v)
{
	bool digits = true;

	v = sv_trim(v);
	if (v.n < 3 || lint_is_reference(v) || lint_has(v, "${") || is_placeholder(v))
		return false;
	if (v.p[0] == '/' || lint_starts(v, "./") || lint_starts(v, "~/"))
		return false;
	if (lint_eq(v, "true") || lint_eq(v, "false") || lint_eq(v, "none") || lint_eq(v, "null"))
		return false;
	for (size_t i = 0; i < v.n; i++)
		digits = digits && v.p[i] >= '0' && v.p[i] <= '9';
	return !digits || v.n >= 6;
}

static bool is_allowlist(struct sv name)
{
	static const char *const of[] = { "domain", "egress", "outbound", "url", "firewall",
					  "sandbox", "network", NULL };

	return (lint_has(name, "allow") || lint_has(name, "whitelist")) &&
	       lint_any(name, of, lint_has);
}

static void check_allowlist(struct check *c, const struct node *at, struct sv value)
{
	while (value.n) {
		size_t n = 0;

		while (n < value.n && !strchr(", ;\t\n|", value.p[n]))
			n++;
		lint_host_check(c, at, sv_sub(value, 0, n));
		value = sv_skip(value, n + 1);
	}
}

void lint_env(struct check *c, const struct node *at, struct sv name, struct sv value)
{
	const struct sv v = sv_trim(lint_default(value));

	if (is_allowlist(name))
		check_allowlist(c, at, v);
	if (lint_is_reference(v) || (!v.n && value.n)) {
		lint_env_passed(c, at, name);
		return;
	}
	if ((lint_secret_name(name) && is_literal(v)) || is_secret_value(v))
		lint_report(c, R_SECRET_LITERAL, at, SV_FMT ", %zu bytes", SV_ARG(name), v.n);
}

void lint_env_passed(struct check *c, const struct node *at, struct sv name)
{
	if (lint_secret_name(name))
		lint_found(c, R_SECRET_IN_SANDBOX, at, name);
}

void lint_secret_word(struct check *c, const struct node *at, struct sv before, struct sv word)
{
	const size_t eq = sv_find(word, '=');
	struct sv name = SV(""), value = word;

	if (eq != SIZE_MAX) {
		name = sv_sub(word, 0, eq);
		value = sv_skip(word, eq + 1);
	} else if (lint_starts(before, "--") && sv_find(before, '=') == SIZE_MAX &&
		   !lint_starts(word, "-")) {
		name = before;
	}
	if (lint_has(word, "bearer "))
		value = sv_trim(sv_skip(word, sv_rfind(word, ' ')));
	if (is_secret_value(value) || is_secret_value(word))
		lint_found(c, R_SECRET_LITERAL, at, SV("in an argument"));
	else if (lint_starts(name, "--") && lint_secret_name(name) && is_literal(value))
		lint_found(c, R_SECRET_LITERAL, at, name);
}

static void stars(struct buf *b, struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((uint8_t)s.p[i] & 0xc0) != 0x80)
			buf_ch(b, '*');
}

/* Returns the length of the value at the start of @s: up to the closing quote, or one word. */
static size_t value_len(struct sv s, char quote)
{
	size_t i = 0;

	if (quote) {
		while (i < s.n && s.p[i] != quote)
			i += s.p[i] == '\\' && i + 1 < s.n ? 2 : 1;
		return i < s.n ? i : s.n;
	}
	while (i < s.n && !strchr(" \t,\"'}", s.p[i]))
		i++;
	return i;
}

/*
 * Masks the value of a secret-like name: skips `=`, `:`, blanks and a quote at the start of @rest,
 * and masks the value that follows. Returns the bytes consumed, or 0 if @rest is no assignment.
 */
static size_t mask_value(struct sv rest, bool blank_is_enough, struct buf *b)
{
	bool assigned = blank_is_enough;
	char quote = 0;
	size_t i = 0, n;

	for (; i < rest.n && rest.p[i] && strchr("=: \t\"'", rest.p[i]); i++) {
		assigned = assigned || rest.p[i] == '=' || rest.p[i] == ':';
		quote = rest.p[i] == '"' || rest.p[i] == '\'' ? rest.p[i] : 0;
	}
	if (!assigned || !i || i == rest.n || rest.p[i] == '$' || rest.p[i] == '{')
		return 0;
	n = value_len(sv_skip(rest, i), quote);
	buf_sv(b, sv_sub(rest, 0, i));
	stars(b, sv_sub(rest, i, n));
	return i + n;
}

/*
 * Appends the run of token characters at position @i of @line to @b, with secrets masked. Returns
 * the bytes consumed.
 */
static size_t mask_run(struct sv line, size_t i, bool env_line, struct buf *b)
{
	struct sv run = sv_skip(line, i), value;
	size_t n = 0, eq, used;

	while (n < run.n && token_char(run.p[n]))
		n++;
	run.n = n;
	eq = sv_find(run, '=');
	value = eq == SIZE_MAX ? run : sv_skip(run, eq + 1);
	if (is_secret_value(value)) {
		buf_sv(b, sv_sub(run, 0, run.n - value.n));
		stars(b, value);
		return n;
	}
	if (eq != SIZE_MAX)
		run.n = eq ? eq : 1;
	buf_sv(b, run);
	if (!lint_secret_name(run))
		return run.n;
	used = mask_value(sv_skip(line, i + run.n), env_line || lint_starts(run, "--"), b);
	return run.n + used;
}

void lint_secret_mask(struct sv line, struct buf *b)
{
	const struct sv trimmed = sv_trim(line);
	const bool env_line =
		lint_eq(sv_sub(trimmed, 0, 4), "env ") || lint_eq(sv_sub(trimmed, 0, 4), "arg ");
	size_t i = 0;

	while (i < line.n) {
		struct sv rest = sv_skip(line, i);
		const struct sv pw = lint_starts(rest, "://")
					     ? url_password((struct sv){ i ? rest.p - 1 : rest.p,
									 rest.n + (i ? 1 : 0) })
					     : SV("");

		if (pw.n && !lint_is_reference(pw)) {
			buf_sv(b, sv_sub(rest, 0, (size_t)(pw.p - rest.p)));
			stars(b, pw);
			i += (size_t)(pw.p - rest.p) + pw.n;
		} else if (token_char(line.p[i])) {
			i += mask_run(line, i, env_line, b);
		} else {
			buf_ch(b, line.p[i++]);
		}
	}
}

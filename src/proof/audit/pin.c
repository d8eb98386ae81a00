#include "audit/pin.h"

#include <fcntl.h>

#include "base/fd.h"

#include "base/banned.h"

static const char head[] = "# Keys that writ believes: C2SP tlog-policy. What is not signed by "
			   "them does not verify.\n";

/* Name of the witness group that this program maintains and may rewrite. */
#define OWN_GROUP "witnesses"

void pins_clear(struct pins *p)
{
	buf_clear(&p->text);
}

int pins_read(const char *path, struct pins *p, struct writ_err *err)
{
	struct writ_err why = { 0 };
	int r = fd_read_optional(path, &p->text, err);

	if (r <= 0)
		return r;
	r = tlog_policy_parse(buf_view(&p->text), &p->policy, &why);
	return r < 0 ? writ_fail(err, r, 0, "%s: %s", path, why.what) : 0;
}

bool pins_has_log(const struct pins *p, const struct note_key *log)
{
	for (size_t i = 0; i < p->policy.logs_n; i++)
		if (note_key_eq(&p->policy.log[i].key, log))
			return true;
	return false;
}

/* Writes the pin file, after checking that its text can be parsed again. */
static int write_pins(const char *path, const struct buf *b, struct writ_err *err)
{
	struct tlog_policy check;
	int r;

	if ((r = buf_check(b, err)) < 0 || (r = tlog_policy_parse(buf_view(b), &check, err)) < 0)
		return r;
	return fd_replace_deep(AT_FDCWD, path, buf_view(b), 0600, err);
}

int pins_add_log(const char *path, const struct note_key *log, struct writ_err *err)
{
	scoped_pins p = PINS_INIT;
	scoped_buf b = BUF_INIT(TLOG_POLICY_MAX);
	int r = pins_read(path, &p, err);

	if (r < 0 || pins_has_log(&p, log))
		return r;
	if (p.text.n)
		buf_sv(&b, buf_view(&p.text));
	else
		buf_fmt(&b, "%squorum none\n", head);
	buf_str(&b, "log ");
	note_key_print(log, &b);
	buf_ch(&b, '\n');
	return write_pins(path, &b, err);
}

static bool has_own_groups(const struct tlog_policy *p)
{
	for (size_t i = 0; i < p->groups_n; i++)
		if (!sv_is(p->group[i].name, OWN_GROUP))
			return true;
	return p->quorum == TLOG_QUORUM_WITNESS;
}

static bool is_line(struct sv line, struct sv word, struct sv second)
{
	struct sv rest = sv_trim(line);

	if (!sv_eq(sv_cut(&rest, ' '), word))
		return false;
	rest = sv_trim(rest);
	return second.n == 0 || sv_eq(sv_cut(&rest, ' '), second);
}

/*
 * Copies all lines of the pin file except the quorum line and writ's own group of witnesses, which
 * the caller writes anew.
 */
static void copy_others(struct sv text, struct buf *b)
{
	while (text.n) {
		const struct sv line = sv_cut(&text, '\n');

		if (is_line(line, SV("quorum"), SV("")) ||
		    is_line(line, SV("group"), SV(OWN_GROUP)))
			continue;
		buf_sv(b, line);
		buf_ch(b, '\n');
	}
}

static void free_name(const struct tlog_policy *p, struct buf *b)
{
	for (unsigned i = 1; b->n == 0 || tlog_policy_has_name(p, buf_view(b)); i++) {
		b->n = 0;
		buf_fmt(b, "w%u", i);
	}
}

int pins_add_witness(const char *path, const struct note_key *witness, struct sv url,
		     bool *ret_required, struct writ_err *err)
{
	scoped_pins p = PINS_INIT;
	scoped_buf b = BUF_INIT(TLOG_POLICY_MAX), name = BUF_INIT(32);
	bool own;
	int r = pins_read(path, &p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p.policy.witnesses_n; i++)
		if (note_key_eq(&p.policy.witness[i].key, witness))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "this witness is there already");
	if (!sv_is_graph(url) || url.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not a URL");
	own = has_own_groups(&p.policy);
	if (p.text.n == 0)
		buf_str(&b, head);
	if (own)
		buf_sv(&b, buf_view(&p.text));
	else
		copy_others(buf_view(&p.text), &b);
	free_name(&p.policy, &name);
	buf_fmt(&b, "witness " SV_FMT " ", SV_ARG(buf_view(&name)));
	note_key_print(witness, &b);
	buf_fmt(&b, " " SV_FMT "\n", SV_ARG(url));
	if (!own) {
		buf_str(&b, "group " OWN_GROUP " all");
		for (size_t i = 0; i < p.policy.witnesses_n; i++)
			buf_fmt(&b, " " SV_FMT, SV_ARG(p.policy.witness[i].name));
		buf_fmt(&b, " " SV_FMT "\nquorum " OWN_GROUP "\n", SV_ARG(buf_view(&name)));
	}
	r = write_pins(path, &b, err);
	if (r == 0)
		*ret_required = !own;
	return r;
}

#include <string.h>

#include "lib/lib_priv.h"

#include "base/banned.h"

/*
 * Records, one after the other: a tag, a length, bytes. Numbers are of this machine:
 * both ends run on it, and the bytes never leave it.
 */
enum tag {
	TAG_NONE = 0,
	TAG_HOME,
	TAG_REAL_HOME,
	TAG_CONFIG,
	TAG_STATE,
	TAG_REALM,
	TAG_CWD,
	TAG_WORKSPACE,
	TAG_PATH,
	TAG_PROGRAM,
	TAG_TREE,
	TAG_FLAGS, /* enum flag */
	TAG_TIER,
	TAG_DIGEST,
	TAG_VAR_NAME, /* before its value */
	TAG_VAR_VALUE,
	/* These begin a source; what it has follows. */
	TAG_FILE,
	TAG_NARROW,
	TAG_ARG,  /* one byte: enum policy_arg_kind */
	TAG_USED, /* the name as it was written */
	TAG_USED_DIR,
	TAG_USED_ID,
	TAG_NAME,
	TAG_DIR,
	TAG_TEXT,
	TAG_ALONE,
	/* of commands */
	TAG_ID,
	TAG_RUN_FLAGS,
	TAG_ARGUMENT,
	TAG_ENVIRON,
};

enum flag { HAS_DEFAULT_WRITE = 1u << 0, HAS_MISSING_OK = 1u << 1 };

enum { INPUT_MAX = 64 << 20, FEW = 65536 };

static void put(struct buf *b, enum tag tag, struct sv bytes)
{
	const uint32_t head[2] = { (uint32_t)tag, (uint32_t)bytes.n };

	buf_add(b, head, sizeof(head));
	buf_sv(b, bytes);
}

static void put_number(struct buf *b, enum tag tag, uint32_t n)
{
	put(b, tag, (struct sv){ (const char *)&n, sizeof(n) });
}

/* False at the end, or if what is left is no record: then @at is not @in's end. */
static bool next(struct sv *in, enum tag *ret_tag, struct sv *ret)
{
	uint32_t head[2];

	if (in->n < sizeof(head))
		return false;
	memcpy(head, in->p, sizeof(head));
	if (head[1] > in->n - sizeof(head))
		return false;
	*ret_tag = (enum tag)head[0];
	*ret = sv_sub(*in, sizeof(head), head[1]);
	*in = sv_skip(*in, sizeof(head) + head[1]);
	return true;
}

static bool get_number(struct sv bytes, uint32_t *ret)
{
	if (bytes.n != sizeof(*ret))
		return false;
	memcpy(ret, bytes.p, sizeof(*ret));
	return true;
}

static int damaged(struct writ_err *err)
{
	return writ_fail(err, WRIT_E_SYNTAX, 0, "a request to writ-supervise is damaged");
}

/* --- a policy --- */

static void put_source(struct buf *b, const struct source *s)
{
	put(b, TAG_NAME, s->name);
	put(b, TAG_DIR, s->dir);
	put(b, TAG_TEXT, s->text);
	if (s->alone)
		put(b, TAG_ALONE, SV(""));
}

/* The one table of what has a name of its own. */
static struct sv *place_of(struct lib_input *in, enum tag tag)
{
	const struct {
		enum tag tag;
		struct sv *to;
	} table[] = {
		{ TAG_HOME, &in->find.where.home },
		{ TAG_REAL_HOME, &in->find.where.real_home },
		{ TAG_CONFIG, &in->find.where.config },
		{ TAG_STATE, &in->find.where.state },
		{ TAG_REALM, &in->find.where.realm },
		{ TAG_CWD, &in->find.where.cwd },
		{ TAG_WORKSPACE, &in->find.where.workspace },
		{ TAG_PATH, &in->find.path },
		{ TAG_PROGRAM, &in->find.program },
		{ TAG_TREE, &in->find.tree },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].tag == tag)
			return table[i].to;
	return NULL;
}

int lib_input_encode(const struct lib_input *from, struct buf *b, struct writ_err *err)
{
	struct lib_input in = *from;

	for (unsigned tag = TAG_HOME; tag <= TAG_TREE; tag++)
		put(b, (enum tag)tag, *place_of(&in, (enum tag)tag));
	put_number(b, TAG_FLAGS,
		   (in.find.default_write ? HAS_DEFAULT_WRITE : 0) |
			   (in.find.missing_ok ? HAS_MISSING_OK : 0));
	put_number(b, TAG_TIER, (uint32_t)in.tier);
	put(b, TAG_DIGEST, (struct sv){ (const char *)in.digest.b, sizeof(in.digest.b) });
	for (size_t i = 0; i < in.find.vars.n; i++) {
		put(b, TAG_VAR_NAME, in.find.vars.v[i].name);
		put(b, TAG_VAR_VALUE, in.find.vars.v[i].value);
	}
	for (size_t i = 0; i < in.find.files.n; i++) {
		put(b, TAG_FILE, SV(""));
		put_source(b, &in.find.files.v[i]);
	}
	if (in.find.has_narrow) {
		put(b, TAG_NARROW, SV(""));
		put_source(b, &in.find.narrow);
	}
	for (size_t i = 0; i < in.find.args.n; i++) {
		put_number(b, TAG_ARG, (uint32_t)in.find.args.v[i].kind);
		put_source(b, &in.find.args.v[i].src);
	}
	for (size_t i = 0; i < in.find.used.n; i++) {
		put(b, TAG_USED, in.find.used.v[i].name);
		put(b, TAG_USED_DIR, in.find.used.v[i].dir);
		put(b, TAG_USED_ID, in.find.used.v[i].id);
		put_source(b, &in.find.used.v[i].src);
	}
	return buf_check(b, err);
}

/* A new source of the kind @tag; NULL: no room, or no such kind. */
static struct source *begin_source(struct arena *a, struct lib_input *in, enum tag tag,
				   struct sv bytes)
{
	struct policy_arg *arg;
	struct find_used *used;
	uint32_t kind;

	if (tag == TAG_FILE)
		return in->find.files.n < FEW ? vec_push(a, &in->find.files) : NULL;
	if (tag == TAG_NARROW) {
		in->find.has_narrow = true;
		return &in->find.narrow;
	}
	if (tag == TAG_ARG) {
		arg = in->find.args.n < FEW && get_number(bytes, &kind) && kind <= ARG_USE
			      ? vec_push(a, &in->find.args)
			      : NULL;
		if (arg)
			arg->kind = (enum policy_arg_kind)kind;
		return arg ? &arg->src : NULL;
	}
	used = in->find.used.n < FEW ? vec_push(a, &in->find.used) : NULL;
	if (used)
		used->name = bytes;
	return used ? &used->src : NULL;
}

/* What belongs to the source that was begun last. */
static bool fill_source(struct lib_input *in, struct source *s, enum tag tag, struct sv bytes)
{
	struct find_used *used = in->find.used.n ? &in->find.used.v[in->find.used.n - 1] : NULL;

	if (!s)
		return false;
	if (tag == TAG_NAME)
		s->name = bytes;
	else if (tag == TAG_DIR)
		s->dir = bytes;
	else if (tag == TAG_TEXT)
		s->text = bytes;
	else if (tag == TAG_ALONE)
		s->alone = true;
	else if (used && s == &used->src && tag == TAG_USED_DIR)
		used->dir = bytes;
	else if (used && s == &used->src && tag == TAG_USED_ID)
		used->id = bytes;
	else
		return false;
	return true;
}

static bool fill_setting(struct arena *a, struct lib_input *in, enum tag tag, struct sv bytes)
{
	struct sv *place = place_of(in, tag);
	struct policy_var *var;
	uint32_t n = 0;

	if (place) {
		*place = bytes;
	} else if (tag == TAG_FLAGS && get_number(bytes, &n)) {
		in->find.default_write = n & HAS_DEFAULT_WRITE;
		in->find.missing_ok = n & HAS_MISSING_OK;
	} else if (tag == TAG_TIER && get_number(bytes, &n) && n <= TIER_B) {
		in->tier = (enum plan_tier)n;
	} else if (tag == TAG_DIGEST && bytes.n == sizeof(in->digest.b)) {
		memcpy(in->digest.b, bytes.p, bytes.n);
	} else if (tag == TAG_VAR_NAME && in->find.vars.n < FEW) {
		var = vec_push(a, &in->find.vars);
		if (!var)
			return false;
		*var = (struct policy_var){ bytes, SV("") };
	} else if (tag == TAG_VAR_VALUE && in->find.vars.n) {
		in->find.vars.v[in->find.vars.n - 1].value = bytes;
	} else {
		return false;
	}
	return true;
}

static const struct source empty = { .name = SV_INIT(""), .dir = SV_INIT(""), .text = SV_INIT("") };

int lib_input_decode(struct arena *a, struct sv bytes, struct lib_input *ret, struct writ_err *err)
{
	struct lib_input in = { .find.narrow = empty };
	struct source *last = NULL;
	struct sv rest, value;
	enum tag tag;

	for (unsigned t = TAG_HOME; t <= TAG_TREE; t++)
		*place_of(&in, (enum tag)t) = SV("");
	if (bytes.n > INPUT_MAX || !arena_sv(a, bytes, &rest))
		return writ_fail(err, WRIT_E_LIMIT, 0, "a request to writ-supervise is too large");
	while (next(&rest, &tag, &value)) {
		if (tag < TAG_FILE) {
			if (!fill_setting(a, &in, tag, value))
				return damaged(err);
		} else if (tag <= TAG_USED) {
			last = begin_source(a, &in, tag, value);
			if (!last)
				return damaged(err);
			*last = empty;
			if (tag == TAG_USED)
				in.find.used.v[in.find.used.n - 1].dir =
					in.find.used.v[in.find.used.n - 1].id = SV("");
		} else if (!fill_source(&in, last, tag, value)) {
			return damaged(err);
		}
	}
	if (rest.n)
		return damaged(err);
	*ret = in;
	return 0;
}

/* --- a command --- */

int lib_command_encode(const struct lib_command *c, struct buf *b, struct writ_err *err)
{
	put_number(b, TAG_RUN_FLAGS, c->flags);
	put(b, TAG_CWD, c->cwd);
	if (c->id.n) {
		put(b, TAG_ID, c->id);
		put(b, TAG_STATE, c->state);
	}
	for (size_t i = 0; i < c->argv.n; i++)
		put(b, TAG_ARGUMENT, sv_from(c->argv.v[i]));
	for (size_t i = 0; i < c->environ.n; i++)
		put(b, TAG_ENVIRON, sv_from(c->environ.v[i]));
	return buf_check(b, err);
}

static bool fill_command(struct arena *a, struct lib_command *c, enum tag tag, struct sv bytes)
{
	char **s;

	switch ((unsigned)tag) {
	case TAG_RUN_FLAGS:
		return get_number(bytes, &c->flags);
	case TAG_CWD:
		c->cwd = bytes;
		return true;
	case TAG_ID:
		c->id = bytes;
		return true;
	case TAG_STATE:
		c->state = bytes;
		return true;
	case TAG_ARGUMENT:
		s = vec_push(a, &c->argv);
		break;
	case TAG_ENVIRON:
		s = vec_push(a, &c->environ);
		break;
	default:
		return false;
	}
	if (s)
		*s = arena_str(a, bytes);
	return s && *s && !memchr(*s, 0, bytes.n);
}

int lib_command_decode(struct arena *a, struct sv bytes, struct lib_command *ret,
		       struct writ_err *err)
{
	struct lib_command c = { .id = SV(""), .state = SV(""), .cwd = SV("") };
	struct sv rest, value;
	enum tag tag;

	if (bytes.n > INPUT_MAX || !arena_sv(a, bytes, &rest))
		return writ_fail(err, WRIT_E_LIMIT, 0, "a request to writ-supervise is too large");
	while (next(&rest, &tag, &value))
		if (!fill_command(a, &c, tag, value))
			return damaged(err);
	/* Both lists end with NULL, which is not counted. */
	if (rest.n || !vec_push(a, &c.argv) || !vec_push(a, &c.environ))
		return damaged(err);
	c.argv.n--;
	c.environ.n--;
	*ret = c;
	return 0;
}

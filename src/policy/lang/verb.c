#include "lang/ast_priv.h"

#include "base/banned.h"

#define Q(x) (1u << QUAL_##x)

/* The parser, the test of docs/language.md and shell completion read this table. */
/* clang-format off */
static const struct verb verbs[] = {
	{ "read",   VERB_READ,   0, "a path" },
	{ "write",  VERB_WRITE,  0, "a path" },
	{ "put",    VERB_PUT,    0, "a path" },
	{ "exec",   VERB_EXEC,   Q(ARGS) | Q(SHA256), "a program name or path" },
	{ "net",    VERB_NET,    Q(METHODS) | Q(QUERY) | Q(RATE) | Q(COUNT) | Q(UP) | Q(DOWN) |
				 Q(PRIVATE) | Q(TLS), "a URL, host, host:port or *" },
	{ "listen", VERB_LISTEN, 0, "a port" },
	{ "unix",   VERB_UNIX,   0, "a socket path" },
	{ "git",    VERB_GIT,    Q(FETCH) | Q(PUSH) | Q(COUNT) | Q(RATE), "a repository URL" },
	{ "device", VERB_DEVICE, Q(MODE), "a path below /dev" },
	{ "kernel", VERB_KERNEL, 0, "nested-userns, ptrace-own or io_uring" },
	{ "tool",   VERB_TOOL,   Q(COUNT) | Q(RATE), "server/tool" },
	{ "agent",  VERB_AGENT,  0, "an agent's name" },
	{ "shell",  VERB_SHELL,  0, "none, read-only, read-write or full" },
	{ NULL,     VERB_NONE,   0, NULL },
};

static const char *const qual_names[] = {
	[QUAL_ARGS] = "args",   [QUAL_COUNT] = "count",     [QUAL_DOWN] = "down",
	[QUAL_FETCH] = "fetch", [QUAL_METHODS] = "methods", [QUAL_MODE] = "mode",
	[QUAL_PRIVATE] = "private", [QUAL_PUSH] = "push",   [QUAL_QUERY] = "query",
	[QUAL_RATE] = "rate",   [QUAL_SHA256] = "sha256",   [QUAL_TLS] = "tls",
	[QUAL_UP] = "up",
};
/* clang-format on */
_Static_assert(ARRAY_LEN(qual_names) == QUAL_COUNT_ALL, "every qualifier has a name");

const struct verb *lang_verb_find(struct sv name)
{
	for (const struct verb *v = verbs; v->name; v++)
		if (sv_is(name, v->name))
			return v;
	return NULL;
}

const char *lang_qual_name(enum qual_id id)
{
	return qual_names[id];
}

const char *const *policy_verb_names(void)
{
	static const char *const names[] = { "read",   "write", "put",	 "exec",   "net",
					     "listen", "unix",	"git",	 "device", "kernel",
					     "tool",   "agent", "shell", NULL };

	_Static_assert(ARRAY_LEN(names) == ARRAY_LEN(verbs), "one list of verbs");
	return names;
}

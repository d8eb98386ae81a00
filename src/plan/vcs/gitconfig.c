#include "vcs/gitconfig.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { KEY_MAX = 1024 };

/* A decoded variable of a git configuration; section and name are in lower case. */
struct entry {
	char section[128], name[128];
	char sub[KEY_MAX];
	char value[GITCONFIG_VALUE];
	size_t sub_n, value_n;
	bool has_sub, has_value;
};

struct reader {
	struct sv rest;
	struct entry e; /* section and subsection stay set between entries */
	bool in_section;
};

/* --- safe keys --- */

enum value_kind {
	VALUE_BAD = 0,
	/* Text or number that git displays or compares, but never executes or opens. */
	VALUE_TEXT,
	VALUE_URL,    /* URL of a remote, with no transport that runs a program */
	VALUE_REMOTE, /* name of a remote, or a URL */
	VALUE_UPDATE, /* submodule.NAME.update without a command */
	VALUE_WORKTREE,
};

struct safe_key {
	const char *section;
	bool sub;	   /* the section has a subsection: [section "something"] */
	const char *names; /* names of keys in lower case, separated by spaces; "*" for all */
	enum value_kind kind;
};

/* clang-format off */
static const struct safe_key safe_keys[] = {
	{ "core", false, " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
	  "autocrlf eol safecrlf quotepath abbrev compression loosecompression bigfilethreshold untrackedcache checkstat "
	  "trustctime preloadindex commentchar sparsecheckout sparsecheckoutcone sharedrepository protecthfs protectntfs "
	  "packedgitlimit packedgitwindowsize deltabasecachelimit commitgraph multipackindex splitindex whitespace "
	  "warnambiguousrefs ", VALUE_TEXT },
	{ "core", false, " worktree ", VALUE_WORKTREE },
	{ "extensions", false, " worktreeconfig objectformat partialclone refstorage preciousobjects noop ", VALUE_TEXT },
	{ "remote", true, " url pushurl ", VALUE_URL },
	{ "remote", true, " fetch push tagopt prune prunetags skipdefaultupdate skipfetchall mirror promisor "
	  "partialclonefilter gh-resolved ", VALUE_TEXT },
	{ "remote", false, " pushdefault ", VALUE_REMOTE },
	{ "branch", true, " remote pushremote ", VALUE_REMOTE },
	{ "branch", true, " merge rebase description vscode-merge-base gh-merge-base github-pr-owner-number ", VALUE_TEXT },
	{ "branch", false, " autosetupmerge autosetuprebase sort ", VALUE_TEXT },
	{ "user", false, " name email useconfigonly ", VALUE_TEXT },
	{ "author", false, " name email ", VALUE_TEXT },
	{ "committer", false, " name email ", VALUE_TEXT },
	{ "push", false, " default autosetupremote followtags gpgsign recursesubmodules useforceifincludes ", VALUE_TEXT },
	{ "pull", false, " rebase ff ", VALUE_TEXT },
	{ "fetch", false, " prune prunetags recursesubmodules parallel writecommitgraph fsckobjects unpacklimit output "
	  "showforcedupdates negotiationalgorithm ", VALUE_TEXT },
	{ "transfer", false, " fsckobjects unpacklimit ", VALUE_TEXT },
	{ "merge", false, " ff conflictstyle renames renamelimit directoryrenames log stat autostash verbosity ", VALUE_TEXT },
	{ "rebase", false, " autostash autosquash updaterefs stat missingcommitscheck rebasemerges abbreviatecommands ", VALUE_TEXT },
	{ "rerere", false, " enabled autoupdate ", VALUE_TEXT },
	{ "commit", false, " verbose status cleanup gpgsign ", VALUE_TEXT },
	{ "tag", false, " sort gpgsign forcesignannotated ", VALUE_TEXT },
	{ "log", false, " date decorate abbrevcommit follow showroot graphcolors ", VALUE_TEXT },
	{ "status", false, " short branch showuntrackedfiles relativepaths aheadbehind showstash renames renamelimit "
	  "submodulesummary displaycommentprefix ", VALUE_TEXT },
	{ "diff", false, " renames renamelimit algorithm mnemonicprefix noprefix context interhunkcontext colormoved "
	  "colormovedws wserrorhighlight ignoresubmodules submodule suppressblankempty relative statgraphwidth ", VALUE_TEXT },
	{ "gc", false, " auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable packrefs "
	  "aggressivedepth aggressivewindow logexpiry worktreepruneexpire rerereresolved rerereunresolved "
	  "writecommitgraph bigpackthreshold cruftpacks ", VALUE_TEXT },
	{ "gc", true, " reflogexpire reflogexpireunreachable ", VALUE_TEXT },
	{ "pack", false, " threads window depth compression windowmemory deltacachesize deltacachelimit indexversion "
	  "packsizelimit usebitmaps writebitmaps usesparse ", VALUE_TEXT },
	{ "repack", false, " usedeltabaseoffset packkeptobjects writebitmaps updateserverinfo ", VALUE_TEXT },
	{ "maintenance", false, " auto strategy ", VALUE_TEXT },
	{ "index", false, " version threads sparse recordendofindexentries recordoffsettable skiphash ", VALUE_TEXT },
	{ "feature", false, " manyfiles experimental ", VALUE_TEXT },
	{ "init", false, " defaultbranch ", VALUE_TEXT },
	{ "submodule", true, " url ", VALUE_URL },
	{ "submodule", true, " update ", VALUE_UPDATE },
	{ "submodule", true, " active branch ignore fetchrecursesubmodules shallow ", VALUE_TEXT },
	{ "submodule", false, " active recurse fetchjobs propagatebranches alternatelocation alternateerrorstrategy ", VALUE_TEXT },
	{ "checkout", false, " defaultremote guess workers thresholdforparallelism ", VALUE_TEXT },
	{ "clone", false, " defaultremotename rejectshallow ", VALUE_TEXT },
	{ "worktree", false, " guessremote ", VALUE_TEXT },
	{ "stash", false, " showpatch showstat showincludeuntracked ", VALUE_TEXT },
	{ "i18n", false, " commitencoding logoutputencoding ", VALUE_TEXT },
	{ "lfs", false, " repositoryformatversion ", VALUE_TEXT },
	{ "column", false, " ui branch status tag ", VALUE_TEXT },
	{ "help", false, " autocorrect ", VALUE_BAD },
	{ "color", false, "*", VALUE_TEXT },
	{ "color", true, "*", VALUE_TEXT },
	{ "advice", false, "*", VALUE_TEXT },
};
/* clang-format on */

static bool has_word(const char *words, const char *word)
{
	char want[130];

	if (words[0] == '*')
		return true;
	(void)snprintf(want, sizeof(want), " %s ", word);
	return strstr(words, want) != NULL;
}

static enum value_kind kind_of(const struct entry *e)
{
	for (size_t i = 0; i < ARRAY_LEN(safe_keys); i++) {
		const struct safe_key *k = &safe_keys[i];

		if (k->sub == e->has_sub && strcmp(k->section, e->section) == 0 &&
		    has_word(k->names, e->name))
			return k->kind;
	}
	return VALUE_BAD;
}

static struct sv value_of(const struct entry *e)
{
	return (struct sv){ e->value, e->value_n };
}

static bool is_printable(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return true;
}

static bool url_is_safe(struct sv url)
{
	static const char *const schemes[] = { "https", "http", "ssh", "git", "file" };
	const size_t colon = sv_find(url, ':');
	const size_t slash = sv_find(url, '/');
	const struct sv scheme = sv_sub(url, 0, colon);

	if (url.n == 0 || url.p[0] == '-')
		return false;
	/* A path or host:path is safe; for "name::rest" git runs the program git-remote-name. */
	if (colon == SIZE_MAX || (slash != SIZE_MAX && slash < colon))
		return true;
	if (sv_starts(sv_skip(url, colon), SV("::")))
		return false;
	if (!sv_starts(sv_skip(url, colon), SV("://")))
		return true;
	/* Ssh parses a host that begins with a dash as an option. */
	if (sv_starts(sv_skip(url, colon), SV("://-")))
		return false;
	return sv_index(scheme, schemes, ARRAY_LEN(schemes)) < ARRAY_LEN(schemes);
}

static bool update_is_safe(struct sv v)
{
	return sv_is(v, "checkout") || sv_is(v, "rebase") || sv_is(v, "merge") || sv_is(v, "none");
}

static bool is_safe(const struct entry *e, bool module)
{
	const enum value_kind kind = kind_of(e);

	if (!is_printable(value_of(e)))
		return false;
	switch (kind) {
	case VALUE_BAD:
		return false;
	case VALUE_TEXT:
		return true;
	case VALUE_URL:
	case VALUE_REMOTE:
		return e->has_value && url_is_safe(value_of(e));
	case VALUE_UPDATE:
		return e->has_value && update_is_safe(value_of(e));
	case VALUE_WORKTREE:
		return module && e->has_value;
	}
	return false;
}

/* --- parser: git's grammar, without constructs that two parsers could interpret differently --- */

static int peek(const struct reader *r)
{
	return r->rest.n ? (unsigned char)r->rest.p[0] : -1;
}

/* Returns the next character. Like git, drops a carriage return before a newline. */
static int next(struct reader *r)
{
	int c = peek(r);

	if (c < 0)
		return -1;
	r->rest = sv_skip(r->rest, 1);
	if (c == '\r' && peek(r) == '\n') {
		r->rest = sv_skip(r->rest, 1);
		c = '\n';
	}
	return c;
}

static bool is_key_char(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-';
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t';
}

static void skip_line(struct reader *r)
{
	int c;

	do
		c = next(r);
	while (c >= 0 && c != '\n');
}

/* Reads a name into @to in lower case; returns false if the name is empty or too long. */
static bool read_name(struct reader *r, char *to, size_t room)
{
	size_t n = 0;

	while (is_key_char(peek(r))) {
		const int c = next(r);

		if (n + 1 >= room)
			return false;
		to[n++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	to[n] = 0;
	return n > 0;
}

/* Reads a subsection after the opening quote of [section "sub"]. */
static bool read_sub(struct reader *r)
{
	struct entry *e = &r->e;

	e->sub_n = 0;
	for (;;) {
		int c = next(r);

		if (c == '"')
			break;
		if (c == '\\')
			c = next(r);
		if (c < 0 || c == '\n' || c == 0 || e->sub_n + 1 >= sizeof(e->sub))
			return false;
		e->sub[e->sub_n++] = (char)c;
	}
	e->has_sub = true;
	return next(r) == ']';
}

/* Reads a section header after the bracket. The old form [a.b], which git still accepts, is refused
 * because no tool writes it. */
static bool read_header(struct reader *r)
{
	r->in_section = true;
	r->e.has_sub = false;
	r->e.sub_n = 0;
	if (!read_name(r, r->e.section, sizeof(r->e.section)))
		return false;
	if (peek(r) == ']')
		return next(r) == ']';
	if (!is_blank(peek(r)))
		return false;
	while (is_blank(peek(r)))
		(void)next(r);
	return next(r) == '"' && read_sub(r);
}

static int unescape(int c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return -1;
	}
}

/* Appends a character to the value; returns false if the value is full. */
static bool put_value(struct entry *e, int c)
{
	if (c <= 0 || e->value_n + 1 >= sizeof(e->value))
		return false;
	e->value[e->value_n++] = (char)c;
	return true;
}

/* Reads a value after the equals sign, up to the end of the line. */
static bool read_value(struct reader *r)
{
	struct entry *e = &r->e;
	bool quoted = false;
	size_t solid = 0; /* length of the value without trailing blanks */

	while (is_blank(peek(r)))
		(void)next(r);
	for (;;) {
		int c = next(r);

		if (c < 0 || c == '\n') {
			e->value_n = solid;
			return !quoted;
		}
		if (!quoted && (c == ';' || c == '#')) {
			skip_line(r);
			e->value_n = solid;
			return true;
		}
		if (c == '"') {
			quoted = !quoted;
			solid = e->value_n;
			continue;
		}
		if (c == '\\') {
			c = next(r);
			if (c == '\n')
				continue;
			c = unescape(c);
			if (!put_value(e, c))
				return false;
			solid = e->value_n;
			continue;
		}
		if (!put_value(e, c))
			return false;
		if (quoted || !is_blank(c))
			solid = e->value_n;
	}
}

/*
 * Reads an entry of the configuration. Returns 1 for an entry, 0 at the end, -1 for input that is
 * not accepted.
 */
static int read_entry(struct reader *r)
{
	struct entry *e = &r->e;

	for (;;) {
		const int c = peek(r);

		if (c < 0)
			return 0;
		if (is_blank(c) || c == '\n' || c == '\r') {
			/*
			 * Refuse a lone carriage return: git takes it for a blank, other parsers
			 * may not.
			 */
			if (next(r) == '\r')
				return -1;
		} else if (c == '#' || c == ';') {
			skip_line(r);
		} else if (c == '[') {
			(void)next(r);
			if (!read_header(r))
				return -1;
		} else {
			break;
		}
	}
	e->value_n = 0;
	e->has_value = false;
	if (!r->in_section || !read_name(r, e->name, sizeof(e->name)))
		return -1;
	while (is_blank(peek(r)))
		(void)next(r);
	if (peek(r) < 0 || peek(r) == '\n' || peek(r) == '\r')
		return next(r) == '\r' ? -1 : 1;
	if (next(r) != '=')
		return -1;
	e->has_value = true;
	return read_value(r) ? 1 : -1;
}

/* --- comparison of the old and the new configuration --- */

static bool same_entry(const struct entry *a, const struct entry *b)
{
	return strcmp(a->section, b->section) == 0 && strcmp(a->name, b->name) == 0 &&
	       a->has_sub == b->has_sub && a->has_value == b->has_value &&
	       sv_eq((struct sv){ a->sub, a->sub_n }, (struct sv){ b->sub, b->sub_n }) &&
	       sv_eq(value_of(a), value_of(b));
}

static void report(struct gitconfig_answer *ret, const struct entry *e, const char *what)
{
	(void)snprintf(ret->why, sizeof(ret->why), "%.40s.%s%.60s: %s", e->section,
		       e->has_sub ? "*." : "", e->name, what);
}

/* Records core.worktree. Returns false for two different values, for which there is no legitimate
 * reason. */
static bool note_worktree(const struct entry *e, struct gitconfig_answer *ret)
{
	if (strcmp(e->section, "core") != 0 || e->has_sub || strcmp(e->name, "worktree") != 0)
		return true;
	if (ret->has_worktree && !sv_eq(value_of(e), sv_from(ret->worktree)))
		return false;
	memcpy(ret->worktree, e->value, e->value_n);
	ret->worktree[e->value_n] = 0;
	ret->has_worktree = true;
	return true;
}

/*
 * Finds the next entry that the agent must not change: an unsafe one, or a second core.worktree
 * with another value. Returns like read_entry().
 */
static int next_fixed(struct reader *r, bool module, struct gitconfig_answer *note)
{
	for (;;) {
		const int got = read_entry(r);

		if (got <= 0)
			return got;
		if (!is_safe(&r->e, module))
			return 1;
		if (note && !note_worktree(&r->e, note))
			return 1;
	}
}

static struct reader reader_for(struct sv text)
{
	/* Git skips a byte order mark at the beginning of the file. */
	if (sv_starts(text, SV("\xef\xbb\xbf")))
		text = sv_skip(text, 3);
	return (struct reader){ .rest = text };
}

bool gitconfig_check(struct sv old_text, struct sv new_text, bool module,
		     struct gitconfig_answer *ret)
{
	struct reader o = reader_for(old_text), n = reader_for(new_text);

	*ret = (struct gitconfig_answer){ 0 };
	if (old_text.n > GITCONFIG_MAX || new_text.n > GITCONFIG_MAX) {
		(void)snprintf(ret->why, sizeof(ret->why), "the configuration is too large");
		return false;
	}
	for (;;) {
		const int was = next_fixed(&o, module, NULL);
		const int is = next_fixed(&n, module, ret);

		if (was < 0 || is < 0) {
			(void)snprintf(ret->why, sizeof(ret->why),
				       "the %s configuration has a form that is not accepted",
				       is < 0 ? "new" : "old");
			return false;
		}
		if (was == 0 && is == 0)
			return true;
		if (was != is || !same_entry(&o.e, &n.e)) {
			report(ret, is ? &n.e : &o.e,
			       is ? "may not be set here" : "may not be removed");
			return false;
		}
	}
}

bool gitconfig_get(struct sv text, const char *section, const char *name,
		   char ret_value[GITCONFIG_VALUE])
{
	struct reader r = reader_for(text);
	bool found = false;

	if (text.n > GITCONFIG_MAX)
		return false;
	while (read_entry(&r) > 0) {
		if (r.e.has_sub || strcmp(r.e.section, section) != 0 || strcmp(r.e.name, name) != 0)
			continue;
		found = r.e.has_value && r.e.value_n > 0;
		memcpy(ret_value, r.e.value, r.e.value_n);
		ret_value[r.e.value_n] = 0;
	}
	return found;
}

bool gitconfig_remotes(struct sv text, bool (*fine)(void *arg, struct sv place), void *arg)
{
	struct reader r = reader_for(text);
	int got;

	while ((got = read_entry(&r)) > 0) {
		const enum value_kind kind = kind_of(&r.e);

		if ((kind == VALUE_URL || kind == VALUE_REMOTE) && !fine(arg, value_of(&r.e)))
			return false;
	}
	return got == 0;
}

bool gitfile_parse(struct sv text, struct sv *ret_place)
{
	struct sv s = text;

	if (!sv_starts(s, SV("gitdir: ")))
		return false;
	s = sv_skip(s, 8);
	while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\r'))
		s = sv_sub(s, 0, s.n - 1);
	if (s.n == 0 || !is_printable(s))
		return false;
	*ret_place = s;
	return true;
}

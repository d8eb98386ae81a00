#include "lang/lower_priv.h"

#include <idn2.h>

#include "base/banned.h"

enum { PORTS_MAX = 64 }; /* limit for ports in one grant: the session opens one listener per port */

const struct qual *lang_qual_find(const struct stmt *s, enum qual_id id)
{
	for (size_t i = 0; i < s->quals_n; i++)
		if (s->quals[i].id == id)
			return &s->quals[i];
	return NULL;
}

bool lang_bad_qual(struct lower *l, const struct stmt *s, const struct qual *q, const char *hint)
{
	return lang_error(l->d, s, &q->word, hint, "\"" SV_FMT "\" is not a value for %s",
			  SV_ARG(q->value), lang_qual_name(q->id));
}

/* Converts a host name to lower case: users may write host names in capitals. */
bool lang_lower_case(struct lower *l, struct sv s, struct sv *ret)
{
	char *p = arena_str(l->a, s);

	if (!p)
		return false;
	for (size_t i = 0; i < s.n; i++)
		p[i] = sv_lower(p[i]);
	*ret = (struct sv){ p, s.n };
	return true;
}

static bool bad_idn(struct lower *l, const struct stmt *s, struct sv host)
{
	const char *name = arena_str(l->a, host);
	char *ascii = NULL;
	const char *hint = NULL;

	if (name && idn2_to_ascii_8z(name, &ascii, IDN2_NONTRANSITIONAL) == IDN2_OK)
		hint = arena_fmt(l->a, "its name on the wire is %s", ascii);
	idn2_free(ascii);
	return lower_error(l, s, hint, "write host names in their ASCII form");
}

static bool ascii_only(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= 0x80)
			return false;
	return true;
}

static bool is_denial(const struct stmt *s)
{
	return s->kind == STMT_RULE && s->effect == EFFECT_DENY;
}

/* Converts a host as the user wrote it to its canonical pattern. */
static bool host_text(struct lower *l, const struct stmt *s, struct sv host, struct sv *ret)
{
	struct cap_net_addr addr;
	struct cap_host h;

	if (!ascii_only(host))
		return bad_idn(l, s, host);
	if (sv_is(host, "*")) {
		*ret = SV("**");
		return true;
	}
	if (!lang_lower_case(l, host, &host))
		return lower_error(l, s, NULL, "out of memory");
	/* Unlike grants, denials may name loopback addresses and whole address spaces. */
	if (cap_host_parse(host, &h) || (is_denial(s) && cap_addr_parse(host, &addr))) {
		*ret = host;
		return true;
	}
	if (sv_ends(host, SV(".localhost")) || sv_is(host, "127.0.0.1") || sv_is(host, "[::1]") ||
	    sv_starts(host, SV("127.")))
		return lower_error(l, s, "localhost:PORT is this machine's loopback",
				   "\"" SV_FMT "\" names the loopback", SV_ARG(host));
	if (sv_ends(host, SV(".")))
		return lower_error(l, s, NULL, "leave out the dot at the end of a host name");
	if (sv_starts(host, SV("*")))
		return lower_error(l, s, "*.example.com is one label, **.example.com one or more",
				   "\"" SV_FMT "\" is not a host pattern", SV_ARG(host));
	if (sv_find(host, ':') != SIZE_MAX && !sv_starts(host, SV("[")))
		return lower_error(l, s, "[ADDRESS]:PORT", "an IPv6 address stands in brackets");
	if (cap_addr_parse(host, &addr))
		return lower_error(l, s, NULL,
				   "\"" SV_FMT "\" cannot be allowed: it covers loopback or "
				   "reserved addresses",
				   SV_ARG(host));
	return lower_error(l, s, NULL, "\"" SV_FMT "\" is not a host name or address",
			   SV_ARG(host));
}

bool policy_looks_internal(struct sv host)
{
	static const char *const ends[] = { ".internal",  ".local",    ".lan",
					    ".corp",	  ".intranet", ".home",
					    ".home.arpa", ".private",  NULL };

	if (sv_find(host, '.') == SIZE_MAX)
		return host.n && host.p[0] != '[' && host.p[0] != '*' && !sv_is(host, "localhost");
	for (size_t i = 0; ends[i]; i++)
		if (sv_ends(host, sv_from(ends[i])))
			return true;
	return false;
}

static bool ports_text(struct lower *l, const struct stmt *s, struct sv ports, struct net_object *o)
{
	if (!cap_ports_parse(ports, &o->lo, &o->hi))
		return lower_error(l, s, "443, or 8000-8010", "\"" SV_FMT "\" is not a port",
				   SV_ARG(ports));
	if (o->hi - o->lo >= PORTS_MAX && !is_denial(s))
		return lower_error(l, s, NULL, "a range has at most %d ports", PORTS_MAX);
	return true;
}

/* Appends a part of a URL path segment, without wildcards, as canonical text. */
static bool put_url_part(struct buf *b, struct sv part)
{
	for (size_t i = 0; i < part.n; i++) {
		char c = part.p[i];

		if (c == '\\' || c == ';')
			return false;
		if (c == '%') {
			const int hi = i + 2 < part.n ? sv_hex(part.p[i + 1]) : -1;
			const int lo = i + 2 < part.n ? sv_hex(part.p[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return false;
			c = (char)(hi << 4 | lo);
			i += 2;
			/* SECURITY: refuse encodings that servers interpret differently. */
			if (c == '/' || c == '\\' || c == 0 || c == '.' || c == '%')
				return false;
		}
		if (c == 0)
			c = '*'; /* a NUL stands for an escaped star */
		cap_put_seg(b, (struct sv){ &c, 1 });
	}
	return true;
}

static bool put_url_seg(struct buf *b, struct sv seg)
{
	const size_t star = sv_find(seg, '*');

	if (star == SIZE_MAX)
		return put_url_part(b, seg);
	if (sv_find(sv_skip(seg, star + 1), '*') != SIZE_MAX ||
	    !put_url_part(b, sv_sub(seg, 0, star)))
		return false;
	buf_ch(b, '*');
	return put_url_part(b, sv_skip(seg, star + 1));
}

/* Converts a URL path with wildcards to canonical text. */
static bool path_text(struct lower *l, const struct stmt *s, struct sv path, struct sv *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct sv rest = sv_skip(path, 1);
	bool good = true;

	if (sv_find(path, '?') != SIZE_MAX || sv_find(path, '#') != SIZE_MAX)
		return lower_error(l, s, "say query=none or query=any behind the URL",
				   "a query or fragment in a URL");
	buf_ch(&b, '/');
	while (good && rest.n) {
		const bool last = sv_find(rest, '/') == SIZE_MAX;
		const struct sv seg = sv_cut(&rest, '/');

		if (last && sv_is(seg, "**")) {
			buf_str(&b, "**");
			break;
		}
		good = seg.n && !sv_is(seg, ".") && !sv_is(seg, "..") && put_url_seg(&b, seg);
		if (!last)
			buf_ch(&b, '/');
	}
	return (good && lang_keep(l, &b, ret)) ||
	       lower_error(l, s, "plain segments, at most one * in each, ** only at the end",
			   "\"" SV_FMT "\" is not a path pattern", SV_ARG(path));
}

/* Parses host[:port][/path], the rest of an http:// or https:// URL. */
static bool parse_url(struct lower *l, const struct stmt *s, struct sv rest, struct net_object *o)
{
	const size_t slash = sv_find(rest, '/');
	struct sv host = sv_sub(rest, 0, slash);
	struct sv port = SV("");
	size_t colon;

	if (sv_find(host, '@') != SIZE_MAX)
		return lower_error(l, s, "give credentials with a secret line",
				   "a user name in a URL");
	colon = sv_rfind(host, ':');
	if (colon != SIZE_MAX && !sv_ends(host, SV("]"))) {
		port = sv_skip(host, colon + 1);
		host = sv_sub(host, 0, colon);
		if (!ports_text(l, s, port, o))
			return false;
		if (o->lo != o->hi)
			return lower_error(l, s, "use tcp://host:first-last", "a URL has one port");
	}
	if (!host_text(l, s, host, &o->host))
		return false;
	if (sv_is(o->host, "localhost") && port.n == 0)
		return lower_error(l, s, "as in http://localhost:3000", "localhost needs a port");
	if (slash != SIZE_MAX) {
		o->has_path = true;
		return path_text(l, s, sv_skip(rest, slash), &o->path);
	}
	o->path = SV("/**");
	return true;
}

/* Parses host[:port[-port]], where host may also be an address or a network. */
static bool parse_host(struct lower *l, const struct stmt *s, struct sv rest, bool tcp,
		       struct net_object *o)
{
	const size_t colon = sv_rfind(rest, ':');
	const size_t close = sv_rfind(rest, ']');
	const bool port = colon != SIZE_MAX && (close == SIZE_MAX || colon > close);
	const struct sv host = port ? sv_sub(rest, 0, colon) : rest;
	struct cap_net_addr addr;

	if (sv_find(host, '/') != SIZE_MAX && !cap_addr_parse(host, &addr))
		return lower_error(l, s, arena_fmt(l->a, "https://" SV_FMT, SV_ARG(rest)),
				   "a path needs a URL with its scheme");
	if (!host_text(l, s, host, &o->host))
		return false;
	if (sv_is(o->host, "**") && !is_denial(s))
		return lower_error(l, s, "* alone is every public name on ports 80 and 443",
				   "name the host");
	if (port)
		return ports_text(l, s, sv_skip(rest, colon + 1), o);
	if (is_denial(s)) {
		o->lo = 1; /* a denial without a port covers every port */
		o->hi = 65535;
		return true;
	}
	if (tcp || sv_is(o->host, "localhost"))
		return lower_error(l, s, arena_fmt(l->a, SV_FMT ":PORT", SV_ARG(s->object.text)),
				   "a port is missing");
	if (sv_find(host, '/') != SIZE_MAX)
		return lower_error(l, s, arena_fmt(l->a, "tcp://" SV_FMT ":PORT", SV_ARG(host)),
				   "a network needs a port");
	o->http = o->tls = o->bare = true;
	o->lo = o->hi = 443;
	o->path = SV("/**");
	return true;
}

bool lang_net_parse(struct lower *l, const struct stmt *s, struct sv text, struct net_object *ret)
{
	struct net_object o = { 0 };
	struct sv rest = text;
	const struct sv scheme = sv_cut(&rest, ':');
	bool good = true;

	if (sv_is(text, "*")) {
		o.any = true;
	} else if (sv_starts(text, SV("https://")) || sv_starts(text, SV("http://"))) {
		o.http = true;
		o.tls = sv_is(scheme, "https");
		o.lo = o.hi = o.tls ? 443 : 80;
		good = parse_url(l, s, sv_skip(rest, 2), &o);
	} else if (sv_starts(text, SV("tcp://"))) {
		good = parse_host(l, s, sv_skip(rest, 2), true, &o);
	} else if (sv_starts(rest, SV("//"))) {
		return lower_error(l, s, "https:// http:// tcp://, or host:port",
				   "unknown scheme \"" SV_FMT "\"", SV_ARG(scheme));
	} else {
		good = parse_host(l, s, text, false, &o);
	}
	if (good)
		*ret = o;
	return good;
}

bool lang_net_url_text(struct lower *l, const struct net_object *o, struct sv *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);

	buf_str(&b, o->tls ? "https://" : "http://");
	buf_sv(&b, o->host);
	buf_fmt(&b, ":%u", o->lo);
	buf_sv(&b, o->path);
	return lang_keep(l, &b, ret);
}

static bool tcp_text(struct lower *l, struct sv host, unsigned lo, unsigned hi, struct sv *ret)
{
	const char *p = lo == hi ? arena_fmt(l->a, "tcp/" SV_FMT ":%u", SV_ARG(host), lo)
				 : arena_fmt(l->a, "tcp/" SV_FMT ":%u-%u", SV_ARG(host), lo, hi);

	*ret = sv_from(p);
	return p != NULL;
}

/* Sorts the items of a comma-separated list; refuses empty and duplicate items. */
static bool sorted_list(struct lower *l, struct sv list, struct sv *ret)
{
	struct sv items[64];
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	size_t n = 0;
	bool good = list.n > 0 && !sv_ends(list, SV(","));

	while (good && list.n) {
		const struct sv item = sv_cut(&list, ',');
		size_t i = n;

		good = n < ARRAY_LEN(items) && item.n;
		if (!good)
			break;
		for (; i > 0 && sv_cmp(items[i - 1], item) > 0; i--)
			items[i] = items[i - 1];
		items[i] = item;
		n++;
		good = i == 0 || !sv_eq(items[i - 1], item);
	}
	for (size_t i = 0; good && i < n; i++) {
		if (i)
			buf_ch(&b, ',');
		buf_sv(&b, items[i]);
	}
	return good && lang_keep(l, &b, ret);
}

static bool put_count(struct lower *l, struct sv *ret, uint64_t v)
{
	*ret = sv_from(arena_fmt(l->a, "%llu", (unsigned long long)v));
	return ret->n > 0;
}

bool lower_counters(struct lower *l, const struct stmt *s, struct params *p)
{
	const struct qual *q;
	uint64_t v, secs;

	q = lang_qual_find(s, QUAL_COUNT);
	if (q && (!sv_to_u64(q->value, 1u << 30, &v) || v == 0 || !put_count(l, &p->v[P_N], v)))
		return lang_bad_qual(l, s, q, "count=20");
	q = lang_qual_find(s, QUAL_UP);
	if (q && (!lang_size_parse(q->value, &v) || !put_count(l, &p->v[P_MAX_OUT], v)))
		return lang_bad_qual(l, s, q, "up=64K");
	q = lang_qual_find(s, QUAL_DOWN);
	if (q && (!lang_size_parse(q->value, &v) || !put_count(l, &p->v[P_MAX_IN], v)))
		return lang_bad_qual(l, s, q, "down=10M");
	q = lang_qual_find(s, QUAL_RATE);
	if (q) {
		struct sv per = q->value;
		const struct sv n = sv_cut(&per, '/');

		if (!sv_to_u64(n, 1u << 30, &v) || v == 0 || !policy_duration(per, &secs))
			return lang_bad_qual(l, s, q, "rate=10/1h");
		p->v[P_RATE] = sv_from(arena_fmt(l->a, "%llu/%llu", (unsigned long long)v,
						 (unsigned long long)secs));
	}
	return true;
}

/* Parses the list of networks in a private= qualifier. */
static bool private_text(struct lower *l, const struct stmt *s, const struct qual *q,
			 struct sv *ret)
{
	static const char example[] = "private=10.0.0.0/8 or private=10.1.0.0/16,[fd00::]/8";
	struct sv rest = q->value;

	if (!sorted_list(l, q->value, ret))
		return lang_bad_qual(l, s, q, example);
	while (rest.n) {
		struct cap_host h;

		if (!cap_host_parse(sv_cut(&rest, ','), &h) ||
		    (h.kind != CAP_HOST_V4 && h.kind != CAP_HOST_V6))
			return lang_bad_qual(l, s, q, example);
	}
	return true;
}

static bool methods_text(struct lower *l, const struct stmt *s, const struct qual *q,
			 struct sv *ret)
{
	struct sv list = q->value;

	if (!sorted_list(l, list, ret))
		return lang_bad_qual(l, s, q, "methods=GET,POST, each once");
	for (size_t i = 0; i < list.n; i++)
		if (list.p[i] != ',' && (list.p[i] < 'A' || list.p[i] > 'Z'))
			return lang_bad_qual(l, s, q,
					"methods are written in capitals: methods=GET,POST");
	return true;
}

static bool http_params(struct lower *l, const struct stmt *s, const struct net_object *o,
			struct params *p)
{
	const struct qual *m = lang_qual_find(s, QUAL_METHODS);
	const struct qual *query = lang_qual_find(s, QUAL_QUERY);
	const struct qual *tls = lang_qual_find(s, QUAL_TLS);

	p->v[P_M] = SV("*");
	p->v[P_Q] = SV("any");
	if (m && !methods_text(l, s, m, &p->v[P_M]))
		return false;
	if (query) {
		if (!sv_is(query->value, "none") && !sv_is(query->value, "any"))
			return lang_bad_qual(l, s, query, "query=none or query=any");
		p->v[P_Q] = query->value;
	}
	if (!tls)
		return true;
	if (!sv_is(tls->value, "passthrough"))
		return lang_bad_qual(l, s, tls, "tls=passthrough");
	if (!o->tls || m || query || o->has_path || p->v[P_N].n || p->v[P_RATE].n)
		return lower_error(l, s, "leave out the path and methods, query, count, rate",
				   "what is passed through cannot be looked into");
	p->v[P_TLS] = SV("pass");
	return true;
}

static bool net_params(struct lower *l, const struct stmt *s, const struct net_object *o,
		       struct params *p)
{
	static const enum qual_id web_only[] = { QUAL_METHODS, QUAL_QUERY, QUAL_TLS };
	const struct qual *priv = lang_qual_find(s, QUAL_PRIVATE);

	if (!lower_counters(l, s, p) || (priv && !private_text(l, s, priv, &p->v[P_PRIV])))
		return false;
	if (o->http)
		return http_params(l, s, o, p);
	for (size_t i = 0; i < ARRAY_LEN(web_only); i++) {
		const struct qual *q = lang_qual_find(s, web_only[i]);

		if (q)
			return lang_error(l->d, s, &q->word,
					  o->any ? "https://* is every public name over HTTPS"
						 : "use an https:// URL",
					  "%s= needs HTTP, and this rule is for any TCP",
					  lang_qual_name(q->id));
	}
	return true;
}

static bool add_net(struct lower *l, const struct stmt *s, const struct net_object *o,
		    const struct params *p)
{
	struct sv text;

	if (o->http)
		return lang_net_url_text(l, o, &text) && lower_add(l, s, CAP_HTTP_REQUEST, text, p);
	return tcp_text(l, o->host, o->lo, o->hi, &text) &&
	       lower_add(l, s, CAP_NET_CONNECT, text, p);
}

bool lower_net(struct lower *l, const struct stmt *s)
{
	struct params p = { 0 };
	struct net_object o;
	const struct net_object all = { .host = SV("**"), .lo = 1, .hi = 65535 };
	const struct net_object http = { .host = SV("**"), .lo = 80, .hi = 80 };
	const struct net_object https = { .host = SV("**"), .lo = 443, .hi = 443 };

	if (!lang_net_parse(l, s, s->object.text, &o))
		return false;
	if (s->effect == EFFECT_DENY)
		return add_net(l, s, o.any ? &all : &o, NULL);
	if (!net_params(l, s, &o, &p))
		return false;
	if (!o.any && !s->src->built_in && p.v[P_PRIV].n == 0 && policy_looks_internal(o.host))
		diag_add(l->d, DIAG_WARNING, lang_word_place(s, &s->object),
			 "if it resolves to a private address, say which: private=10.0.0.0/8",
			 "\"" SV_FMT "\" looks internal", SV_ARG(o.host));
	if (o.any)
		return add_net(l, s, &http, &p) && add_net(l, s, &https, &p);
	return add_net(l, s, &o, &p);
}

/*
 * Converts the repository git@host:path, ssh://[user@]host[:port]/path or https://host[:port]/path
 * to canonical text.
 */
static bool repo_text(struct lower *l, const struct stmt *s, struct sv *ret)
{
	struct sv rest = s->object.text;
	struct sv user = SV("");
	struct net_object o = { .lo = 22, .hi = 22 };
	bool https = false, scp = false;
	struct sv host;

	if (sv_starts(rest, SV("https://"))) {
		https = true;
		o.lo = o.hi = 443;
		rest = sv_skip(rest, 8);
	} else if (sv_starts(rest, SV("ssh://"))) {
		rest = sv_skip(rest, 6);
	} else {
		scp = true;
	}
	host = sv_cut(&rest, scp ? ':' : '/');
	if (sv_find(host, '@') != SIZE_MAX && !https)
		user = sv_cut(&host, '@');
	if (!scp && sv_find(host, ':') != SIZE_MAX) {
		struct sv port = host;

		host = sv_cut(&port, ':');
		if (!ports_text(l, s, port, &o))
			return false;
		if (o.lo != o.hi)
			return lower_error(l, s, NULL, "a repository has one port");
	}
	if (!lang_lower_case(l, host, &host) || !cap_name_check(host) || rest.n == 0 ||
	    sv_starts(rest, SV("/")))
		return lower_error(l, s, "https://host/owner/repo.git or git@host:owner/repo.git",
				   "\"" SV_FMT "\" is not a repository", SV_ARG(s->object.text));
	if (!path_text(l, s, sv_from(arena_fmt(l->a, "/" SV_FMT, SV_ARG(rest))), &rest))
		return false;
	*ret = sv_from(https ? arena_fmt(l->a, "https://" SV_FMT ":%u" SV_FMT, SV_ARG(host), o.lo,
					 SV_ARG(rest))
			     : arena_fmt(l->a, "ssh://" SV_FMT "%s" SV_FMT ":%u" SV_FMT,
					 SV_ARG(user), user.n ? "@" : "", SV_ARG(host), o.lo,
					 SV_ARG(rest)));
	return ret->n > 0;
}

static bool ref_text(struct lower *l, const struct stmt *s, const struct qual *q, struct sv *ret)
{
	struct sv path;
	const char *full =
		arena_fmt(l->a, "/%s" SV_FMT, sv_starts(q->value, SV("refs/")) ? "" : "refs/heads/",
			  SV_ARG(q->value));

	if (!full || !path_text(l, s, sv_from(full), &path))
		return false;
	*ret = sv_skip(path, 1);
	return true;
}

bool lower_git(struct lower *l, const struct stmt *s)
{
	const struct qual *push = lang_qual_find(s, QUAL_PUSH);
	const bool fetch = lang_qual_find(s, QUAL_FETCH) != NULL;
	struct params p = { 0 };
	struct sv repo;

	if (!repo_text(l, s, &repo))
		return false;
	if (s->effect == EFFECT_DENY)
		return lower_add(l, s, CAP_GIT_USE, repo, NULL);
	if (!fetch && !push)
		return lower_error(l, s, "add fetch, push=BRANCH or both", "what may it do there?");
	p.v[P_OP] = fetch && push ? SV("fetch,push") : push ? SV("push") : SV("fetch");
	if (push && !ref_text(l, s, push, &p.v[P_REF]))
		return false;
	return lower_counters(l, s, &p) && lower_add(l, s, CAP_GIT_USE, repo, &p);
}

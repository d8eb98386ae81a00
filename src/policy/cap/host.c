#include "cap/component.h"

#include "base/banned.h"

static bool is_label(struct sv s)
{
	if (s.n == 0 || s.n > 63 || s.p[0] == '-' || s.p[s.n - 1] == '-')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
			return false;
	}
	/*
	 * IDNA reserves labels with "--" as third and fourth character; of these labels only "xn--"
	 * is in use.
	 */
	if (s.n >= 4 && s.p[2] == '-' && s.p[3] == '-')
		return s.p[0] == 'x' && s.p[1] == 'n';
	return true;
}

/* Might a program parse a host name whose last label is @s as an IPv4 address? */
static bool is_number(struct sv s)
{
	const bool hex = s.n >= 2 && s.p[0] == '0' && s.p[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!(c >= '0' && c <= '9') && !(hex && c >= 'a' && c <= 'f'))
			return false;
	}
	return true;
}

bool cap_name_check(struct sv name)
{
	struct sv rest = name, label = SV("");

	if (name.n == 0 || name.n > 253 || name.p[name.n - 1] == '.')
		return false;
	while (rest.n) {
		label = sv_cut(&rest, '.');
		if (!is_label(label))
			return false;
	}
	/*
	 * SECURITY: refuse names that some resolvers do not treat as host names: resolvers may
	 * parse a numeric last label as an IPv4 address, and names below localhost may reach the
	 * loopback.
	 */
	return !is_number(label) && !sv_ends(name, SV(".localhost"));
}

static bool has_dot(struct sv s)
{
	return s.n && memchr(s.p, '.', s.n) != NULL;
}

static bool wildcard_parse(struct sv s, struct cap_host *ret_host)
{
	struct cap_host h = { .kind = CAP_HOST_ANY, .name = SV("") };

	if (!sv_eq(s, SV("**"))) {
		h.kind = sv_starts(s, SV("**.")) ? CAP_HOST_MANY : CAP_HOST_ONE;
		h.name = sv_skip(s, h.kind == CAP_HOST_MANY ? 3 : 2);
		if (!sv_starts(s, h.kind == CAP_HOST_MANY ? SV("**.") : SV("*.")))
			return false;
		/*
		 * Refuse a wildcard directly below a top-level domain, which would cover hosts of
		 * strangers.
		 */
		if (!has_dot(h.name) || !cap_name_check(h.name))
			return false;
	}
	*ret_host = h;
	return true;
}

bool cap_host_parse_for(struct sv s, enum cap_kind kind, struct cap_host *ret_host)
{
	struct cap_host h = { .kind = CAP_HOST_NAME, .name = SV("") };

	if (s.n && s.p[0] == '*')
		return kind != CAP_REQUEST && wildcard_parse(s, ret_host);
	if (cap_addr_parse(s, &h.addr)) {
		h.kind = h.addr.v6 ? CAP_HOST_V6 : CAP_HOST_V4;
		if (kind != CAP_DENIAL && cap_addr_is_reserved(&h.addr))
			return false;
		if (kind == CAP_REQUEST && !cap_addr_is_single(&h.addr))
			return false;
	} else if (cap_name_check(s)) {
		h.name = s;
	} else {
		return false;
	}
	*ret_host = h;
	return true;
}

bool cap_host_parse(struct sv s, struct cap_host *ret_host)
{
	return cap_host_parse_for(s, CAP_GRANT, ret_host);
}

bool cap_host_is_addr(const struct cap_host *h)
{
	return h->kind == CAP_HOST_V4 || h->kind == CAP_HOST_V6;
}

void cap_host_print(const struct cap_host *h, struct buf *b)
{
	switch (h->kind) {
	case CAP_HOST_NONE:
		return;
	case CAP_HOST_NAME:
		break;
	case CAP_HOST_ONE:
		buf_str(b, "*.");
		break;
	case CAP_HOST_MANY:
		buf_str(b, "**.");
		break;
	case CAP_HOST_ANY:
		buf_str(b, "**");
		return;
	case CAP_HOST_V4:
	case CAP_HOST_V6:
		cap_addr_print(&h->addr, b);
		return;
	}
	buf_sv(b, h->name);
}

/* Does @name end in @domain, with at least one label before @domain? */
static bool is_below(struct sv name, struct sv domain)
{
	const size_t dot = name.n - domain.n - 1;

	return name.n > domain.n + 1 && name.p[dot] == '.' &&
	       memcmp(name.p + dot + 1, domain.p, domain.n) == 0;
}

/*
 * Does the host pattern @p match the name @x? CAP_HOST_ANY requires a dot in the name: names of one
 * label, such as localhost, are internal and must be granted by name.
 */
static bool name_matches(const struct cap_host *p, struct sv x)
{
	switch (p->kind) {
	case CAP_HOST_NAME:
		return same_bytes(p->name, x);
	case CAP_HOST_ONE:
		return is_below(x, p->name) && !has_dot(sv_sub(x, 0, x.n - p->name.n - 1));
	case CAP_HOST_MANY:
		return is_below(x, p->name);
	case CAP_HOST_ANY:
		return has_dot(x);
	case CAP_HOST_NONE:
	case CAP_HOST_V4:
	case CAP_HOST_V6:
		return false;
	}
	return false;
}

bool cap_host_matches(const struct cap_host *p, const struct cap_host *x)
{
	if (cap_host_is_addr(x))
		return cap_host_is_addr(p) && cap_addr_within(&x->addr, &p->addr);
	return x->kind == CAP_HOST_NAME && name_matches(p, x->name);
}

static bool wildcard_within(const struct cap_host *child, const struct cap_host *parent)
{
	if (parent->kind == CAP_HOST_ANY)
		return true;
	if (parent->kind == CAP_HOST_ONE)
		return child->kind == CAP_HOST_ONE && same_bytes(child->name, parent->name);
	if (parent->kind != CAP_HOST_MANY || child->kind == CAP_HOST_ANY)
		return false;
	return same_bytes(child->name, parent->name) || is_below(child->name, parent->name);
}

bool cap_host_within(const struct cap_host *child, const struct cap_host *parent)
{
	switch (child->kind) {
	case CAP_HOST_NAME:
	case CAP_HOST_V4:
	case CAP_HOST_V6:
		return cap_host_matches(parent, child);
	case CAP_HOST_ONE:
	case CAP_HOST_MANY:
	case CAP_HOST_ANY:
		return wildcard_within(child, parent);
	case CAP_HOST_NONE:
		return false;
	}
	return false;
}

#include "resolve/resolve.h"

#include <string.h>

#include "base/banned.h"

static struct sv next_word(struct sv *line)
{
	size_t n = 0;

	while (line->n && (*line->p == ' ' || *line->p == '\t' || *line->p == '\r'))
		*line = sv_skip(*line, 1);
	while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t' && line->p[n] != '\r')
		n++;
	*line = (struct sv){ line->p + n, line->n - n };
	return (struct sv){ line->p - n, n };
}

static bool same_name(struct sv a, struct sv canonical)
{
	if (a.n && a.p[a.n - 1] == '.')
		a.n--;
	if (a.n != canonical.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (sv_lower(a.p[i]) != canonical.p[i])
			return false;
	return true;
}

/* Parses an address of the hosts file: adds the brackets that cap_addr_parse() needs for IPv6. */
static bool parse_address(struct sv word, struct cap_net_addr *ret)
{
	char text[64];

	if (sv_find(word, ':') == SIZE_MAX)
		return cap_addr_parse(word, ret);
	if (word.n + 3 > sizeof(text))
		return false;
	text[0] = '[';
	memcpy(text + 1, word.p, word.n);
	text[word.n + 1] = ']';
	return cap_addr_parse((struct sv){ text, word.n + 2 }, ret);
}

size_t hosts_find(struct sv file, struct sv name, struct cap_net_addr *ret, size_t room)
{
	size_t n = 0;

	while (file.n && n < room) {
		struct sv line = sv_cut(&file, '\n'), rest = line, word;
		struct cap_net_addr a;

		line = sv_cut(&rest, '#');
		if (!parse_address(next_word(&line), &a))
			continue;
		while ((word = next_word(&line)).n)
			if (same_name(word, name)) {
				ret[n++] = a;
				break;
			}
	}
	return n;
}

#include <string.h>

#include "term/relay.h"

#include "base/banned.h"

enum {
	GROUND = 0,
	UTF8,	  /* seq holds the first bytes of a character */
	ESCAPE,	  /* an ESC byte was read */
	CHARSET,  /* ESC and the intermediate bytes in seq were read */
	CSI,	  /* control sequence; seq holds its parameters */
	CSI_LONG, /* control sequence too long for seq: dropped up to its final byte */
	STRING,	  /* OSC, DCS, APC, PM, SOS or a title of screen; seq[0] is the introducer */
};

enum {
	CHARSET_MAX = 4,
	/* most digits of a parameter: longer numbers make terminals loop for seconds */
	DIGITS_MAX = 4,
	/* a longer string is probably unterminated, unless it looks like image data */
	LOST_AFTER = 4096,
	LOST_SURELY = 1 << 20 /* a string longer than this is treated as ended in any case */
};

static void bad_char(struct buf *out)
{
	buf_str(out, "\xef\xbf\xbd");
}

static size_t utf8_length(unsigned char lead)
{
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/*
 * Must the character @c be shown as text?
 * SECURITY: C1 controls act like escape sequences, and direction overrides make text read
 * differently from its bytes. The filter prints such characters as <U+XXXX>.
 */
static bool must_show(uint32_t c)
{
	return (c >= 0x80 && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

static void put_char(const struct neutral *n, struct buf *out)
{
	uint32_t c = (unsigned char)n->seq[0] & (0xffU >> (n->held + 1));

	for (size_t i = 1; i < n->held; i++)
		c = c << 6 | ((unsigned char)n->seq[i] & 0x3fU);
	if (must_show(c))
		buf_fmt(out, "<U+%04X>", (unsigned)c);
	else
		buf_add(out, n->seq, n->held);
}

/*
 * Functions in_*() consume one byte in one state. They return false if the byte is not consumed:
 * the state is GROUND then, and the caller offers the byte again.
 */
static bool in_utf8(struct neutral *n, unsigned char c, struct buf *out)
{
	const unsigned char lead = (unsigned char)n->seq[0];
	unsigned char low = 0x80, high = 0xbf;

	if (n->held == 1) { /* reject overlong forms, surrogates and values above U+10FFFF */
		low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : low;
		high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : high;
	}
	if (c < low || c > high) {
		bad_char(out);
		n->state = GROUND;
		return false;
	}
	n->seq[n->held++] = (char)c;
	if (n->held == utf8_length(lead)) {
		put_char(n, out);
		n->state = GROUND;
	}
	return true;
}

static bool in_ground(struct neutral *n, unsigned char c, struct buf *out)
{
	n->held = 0;
	n->gone = 0;
	if (c == 0x1b) {
		n->state = ESCAPE;
	} else if (utf8_length(c)) {
		n->seq[n->held++] = (char)c;
		n->state = UTF8;
	} else if (c >= 0x80) {
		bad_char(out);
	} else if (c == '\t' || c == '\n' || c == '\r' || c == '\b' || (c >= 0x20 && c < 0x7f)) {
		buf_ch(out, (char)c);
	} else {
		buf_ch(out, '^');
		buf_ch(out, (char)(c ^ 0x40));
	}
	return true;
}

static bool in_escape(struct neutral *n, unsigned char c, struct buf *out)
{
	n->state = GROUND;
	if (c == 0x1b || c == '[') {
		n->state = c == '[' ? CSI : ESCAPE;
	} else if (c && strchr("]PX^_k", c)) {
		n->seq[0] = (char)c;
		n->state = STRING;
	} else if (c >= 0x20 && c < 0x30) {
		n->seq[n->held++] = (char)c;
		n->state = CHARSET;
	} else if (c && strchr("78DEM", c)) { /* save, restore, move the cursor */
		buf_fmt(out, "\033%c", c);
	}
	return c >= 0x20 && c < 0x7f ? true : c == 0x1b;
}

static bool in_charset(struct neutral *n, unsigned char c, struct buf *out)
{
	if (c >= 0x20 && c < 0x30 && n->held < CHARSET_MAX) {
		n->seq[n->held++] = (char)c;
		return true;
	}
	n->state = GROUND;
	/* Allow the return to ASCII: many programs send it when they turn all attributes off. */
	if (n->held == 1 && n->seq[0] == '(' && c == 'B')
		buf_str(out, "\033(B");
	return c >= 0x30 && c < 0x7f;
}

static bool short_numbers(struct sv p)
{
	for (size_t i = 0, digits = 0; i < p.n; i++) {
		digits = p.p[i] >= '0' && p.p[i] <= '9' ? digits + 1 : 0;
		if (digits > DIGITS_MAX)
			return false;
	}
	return true;
}

/*
 * Is a control sequence with parameters @p and last byte @final safe?
 * SECURITY: an allow list. A control sequence that is not listed does not reach the terminal.
 */
static bool csi_is_safe(struct sv p, char final)
{
	if (sv_is(p, "?25")) /* show or hide the cursor; NEUTRAL_RESET shows the cursor again */
		return final == 'h' || final == 'l';
	for (size_t i = 0; i < p.n; i++)
		if (!strchr(final == 'm' ? "0123456789;:" : "0123456789;", p.p[i]))
			return false;
	if (!short_numbers(p))
		return false;
	if (final == 'J') /* parameter 3 would erase the scrollback */
		return p.n == 0 || (p.n == 1 && p.p[0] >= '0' && p.p[0] <= '2');
	if (final == 'T') /* more than one parameter starts mouse tracking */
		return sv_find(p, ';') == SIZE_MAX;
	if (final == 's' || final == 'u')
		return p.n == 0;
	return strchr("@ABCDEFGHIKLMPSXZ`abdefm", final) != NULL;
}

static bool in_csi(struct neutral *n, unsigned char c, struct buf *out)
{
	const struct sv params = { n->seq, n->held };

	if (c >= 0x20 && c < 0x40 && ++n->gone <= LOST_AFTER) {
		if (n->held < sizeof(n->seq))
			n->seq[n->held++] = (char)c;
		else
			n->state = CSI_LONG;
		return true;
	}
	if (c >= 0x40 && c < 0x7f && n->state == CSI && csi_is_safe(params, (char)c)) {
		buf_str(out, "\033[");
		buf_sv(out, params);
		buf_ch(out, (char)c);
		n->styled = true;
	}
	n->state = GROUND;
	return c >= 0x40 && c < 0x7f;
}

/*
 * Consumes a byte of a string sequence. A string ends at the bytes at which terminals end a string:
 * ST, BEL, CAN, SUB, or the next ESC. A line end ends all kinds except DCS, because images contain
 * line ends. After LOST_AFTER bytes a string also ends at the first byte that cannot be part of
 * encoded data, so that a program cannot hide its later output by leaving a string open.
 */
static bool in_string(struct neutral *n, unsigned char c)
{
	const bool graph = c > 0x20 && c < 0x7f;

	if (c == 0x1b) {
		n->held = 0;
		n->state = ESCAPE;
		return true;
	}
	n->gone++;
	if (c == 0x07 || c == 0x18 || c == 0x1a) {
		n->state = GROUND;
		return true;
	}
	if ((c == '\n' && n->seq[0] != 'P') || (n->gone > LOST_AFTER && !graph) ||
	    n->gone > LOST_SURELY) {
		n->state = GROUND;
		return false;
	}
	return true;
}

static bool take(struct neutral *n, unsigned char c, struct buf *out)
{
	switch (n->state) {
	case UTF8:
		return in_utf8(n, c, out);
	case ESCAPE:
		return in_escape(n, c, out);
	case CHARSET:
		return in_charset(n, c, out);
	case CSI:
	case CSI_LONG:
		return in_csi(n, c, out);
	case STRING:
		return in_string(n, c);
	default:
		return in_ground(n, c, out);
	}
}

static size_t plain(struct sv in)
{
	size_t i = 0;

	while (i < in.n && in.p[i] >= 0x20 && in.p[i] < 0x7f)
		i++;
	return i;
}

void neutral_step(struct neutral *n, struct sv in, struct buf *out)
{
	while (in.n) {
		const size_t run = n->state == GROUND ? plain(in) : 0;

		buf_add(out, in.p, run);
		in = sv_skip(in, run);
		if (in.n) {
			while (!take(n, (unsigned char)in.p[0], out))
				;
			in = sv_skip(in, 1);
		}
	}
}

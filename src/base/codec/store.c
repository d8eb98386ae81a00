#include "codec/store.h"

#include <string.h>

#include "codec/base64.h"

#include "base/banned.h"

enum { CERT_MAX = 64 << 10, TEXT_MAX = CERT_MAX / 3 * 4, STORE_MAX = 32 << 20 };

/* --- PEM --- */

static struct sv find_text(struct sv in, struct sv what)
{
	const char *p = in.n ? memmem(in.p, in.n, what.p, what.n) : NULL;

	return p ? sv_skip(in, (size_t)(p - in.p)) : SV("");
}

/*
 * Finds the first certificate in the PEM text *@in, returns the text between its BEGIN and END
 * lines, and moves *@in past the certificate.
 */
static bool next_body(struct sv *in, struct sv *ret)
{
	const struct sv begin = SV("-----BEGIN CERTIFICATE-----"),
			end = SV("-----END CERTIFICATE-----");
	const struct sv from = sv_skip(find_text(*in, begin), begin.n);
	const struct sv rest = find_text(from, end);

	if (rest.n == 0)
		return false;
	*ret = sv_sub(from, 0, (size_t)(rest.p - from.p));
	*in = sv_skip(rest, end.n);
	return true;
}

static bool is_blank(char c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

/*
 * Appends the base64 text of a certificate without blanks and line ends. Returns false if @body is
 * not base64, is empty or does not fit into @text.
 */
static bool strip(struct sv body, struct buf *text)
{
	size_t n;

	for (size_t i = 0; i < body.n; i++)
		if (!is_blank(body.p[i]))
			buf_ch(text, body.p[i]);
	return !text->failed && base64_check(BASE64_PADDED, buf_view(text), &n) && n != 0;
}

bool store_next(struct sv *pem, struct buf *der)
{
	struct sv body;
	bool good = false;

	while (!good && next_body(pem, &body)) {
		scoped_buf text = BUF_INIT(TEXT_MAX);

		good = strip(body, &text) && base64_decode_to(BASE64_PADDED, buf_view(&text), der);
	}
	return good;
}

/* --- PKCS #12 --- */

/*
 * An ASN.1 element around another element: the tag, and constant bytes before and after the inner
 * element.
 */
struct layer {
	uint8_t tag;
	struct sv before, after;
};

#define DATA "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"
#define CERT_BAG "\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03"
#define X509_CERT "\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01"
/*
 * Attribute "trusted for any use". Java ignores a certificate in a trust store unless the
 * certificate has this attribute.
 */
#define TRUSTED                                                                                    \
	"\x31\x18\x30\x16\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01"                 \
	"\x31\x06\x06\x04\x55\x1d\x25\x00"

enum { SEQUENCE = 0x30, OCTETS = 0x04, EXPLICIT = 0xa0 };

/* clang-format off */
static const struct layer around_cert[] = {
	{ SEQUENCE, SV_INIT(CERT_BAG), SV_INIT(TRUSTED) },
	{ EXPLICIT, SV_INIT(""), SV_INIT("") },
	{ SEQUENCE, SV_INIT(X509_CERT), SV_INIT("") },
	{ EXPLICIT, SV_INIT(""), SV_INIT("") },
	{ OCTETS, SV_INIT(""), SV_INIT("") },
};
static const struct layer around_all[] = {
	{ SEQUENCE, SV_INIT("\x02\x01\x03"), SV_INIT("") },
	{ SEQUENCE, SV_INIT(DATA), SV_INIT("") },
	{ EXPLICIT, SV_INIT(""), SV_INIT("") },
	{ OCTETS, SV_INIT(""), SV_INIT("") },
	{ SEQUENCE, SV_INIT(""), SV_INIT("") },
	{ SEQUENCE, SV_INIT(DATA), SV_INIT("") },
	{ EXPLICIT, SV_INIT(""), SV_INIT("") },
	{ OCTETS, SV_INIT(""), SV_INIT("") },
	{ SEQUENCE, SV_INIT(""), SV_INIT("") },
};
/* clang-format on */

static unsigned length_bytes(size_t n)
{
	unsigned k = 0;

	while (n >> (8 * k))
		k++;
	return n < 0x80 ? 0 : k;
}

static void put_head(struct buf *b, uint8_t tag, size_t n)
{
	const unsigned k = length_bytes(n);

	buf_ch(b, (char)tag);
	buf_ch(b, (char)(k ? 0x80 | k : n));
	for (unsigned i = k; i-- > 0;)
		buf_ch(b, (char)(n >> (8 * i) & 0xff));
}

static size_t inner_size(const struct layer *v, size_t n, size_t body)
{
	for (size_t i = n; i-- > 0;) {
		body += v[i].before.n + v[i].after.n;
		if (i)
			body += 2 + length_bytes(body);
	}
	return body;
}

static void put_layers(struct buf *b, const struct layer *v, size_t n, struct sv body)
{
	for (size_t i = 0; i < n; i++) {
		put_head(b, v[i].tag, inner_size(v + i, n - i, body.n));
		buf_sv(b, v[i].before);
	}
	buf_sv(b, body);
	for (size_t i = n; i-- > 0;)
		buf_sv(b, v[i].after);
}

int store_java(struct sv pem, struct buf *to, struct writ_err *err)
{
	scoped_buf all = BUF_INIT(STORE_MAX), one = BUF_INIT(CERT_MAX);

	for (; store_next(&pem, &one); buf_clear(&one))
		put_layers(&all, around_cert, ARRAY_LEN(around_cert), buf_view(&one));
	put_layers(to, around_all, ARRAY_LEN(around_all), buf_view(&all));
	to->failed |= all.failed;
	return buf_check(to, err);
}

/* --- browsers --- */

int store_browser(struct sv pem, struct buf *to, struct writ_err *err)
{
	struct sv body;
	const char *comma = "";

	buf_str(to, "{\"CACertificates\":[");
	while (next_body(&pem, &body)) {
		scoped_buf text = BUF_INIT(TEXT_MAX);

		if (!strip(body, &text))
			continue;
		buf_fmt(to, "%s\"" SV_FMT "\"", comma, SV_ARG(buf_view(&text)));
		comma = ",";
	}
	buf_str(to, "]}\n");
	return buf_check(to, err);
}

#include "tap.h"

#include "cap/cap.h"
#include "cap/component.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX64B "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define L63 "a23456789012345678901234567890123456789012345678901234567890123"

static struct arena arena = ARENA_INIT(64 << 20);

static bool parses(enum cap_kind kind, struct sv text, struct cap *c)
{
	struct writ_err err = { 0 };
	const int r = cap_parse(&arena, kind, text, c, &err);

	if (r < 0 && (err.code != r || !err.what[0]))
		return !ok(false, "a failure without a reason");
	return r == 0;
}

/* "+" accepted, "-" refused; the rest of the line is the text. */
static void check_all(enum cap_kind kind, const char *what, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct sv text = sv_from(lines[i] + 1);
		const bool want = lines[i][0] == '+';
		scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
		struct cap c;

		if (!ok(parses(kind, text, &c) == want, "%s %s: %.70s", what,
			want ? "accepted" : "refused", text.p) || !want)
			continue;
		cap_print(&c, &b);
		if (!sv_eq(buf_view(&b), text) || !sv_eq(c.text, text) || c.text.p[c.text.n])
			is_sv(buf_view(&b), text, "printed from its parts");
	}
}

#define CHECK(kind, what, lines) check_all(kind, what, lines, ARRAY_LEN(lines))

/* --- Section 1 --- */

static const char *const shapes[] = {
	"+fs.read:local:/a",
	"+fs.read:0:/a",
	"+fs.read:a._-9:/a",
	"+fs.read:" L63 ":/a",
	"-fs.read:" L63 "4:/a",
	"-fs.read::/a",
	"-fs.read:.a:/a",
	"-fs.read:-a:/a",
	"-fs.read:_a:/a",
	"-fs.read:A:/a",
	"-fs.read:a*:/a",
	"-fs.read:a/b:/a",
	"-",
	"-:",
	"-::",
	"-fs.read",
	"-fs.read:local",
	"-fs.read:local:",
	"-fs.rea:local:/a",
	"-fs.reads:local:/a",
	"-FS.read:local:/a",
	"-fs.read :local:/a",
	"-fs.read:local:/a ",
	"-fs.read:local:/a b",
	"-fs.read:local:/\xc3\xa9",
	"-fs.read:local:/a;",
	"-fs.read:local:/a;;n=1",
	"-fs.read:local:/a;n",
	"-fs.read:local:/a;n=",
	"-fs.read:local:/a;=1",
	"-fs.read:local:/a;x=1",
	"+fs.read:local:/a;n=1",
	"-fs.read:local:/a;n=1;",
	"-fs.read:local:/a;n=1;n=1",
	"-fs.read:local:/a;n=1;n=2",
	"+fs.read:local:/a;n=1;rate=1/1",
	"-fs.read:local:/a;rate=1/1;n=1",
	"+fs.read:local:/a;approve=x;n=1;rate=1/1",
	"-fs.read:local:/a;n=1;approve=x",
	"-fs.read:local:/a;m=GET",
};

static const char *const paths[] = {
	"+fs.read:r:/",
	"+fs.read:r:/**",
	"+fs.read:r:/a/**",
	"+fs.read:r:/a/b/c",
	"+fs.read:r:/.a/..b/...",
	"+fs.read:r:/AZaz09._~+@=-",
	"+fs.read:r:/*",
	"+fs.read:r:/a*",
	"+fs.read:r:/*b",
	"+fs.read:r:/a*b/*/c*/**",
	"+fs.read:r:/.*",
	"+fs.read:r:/%20",
	"+fs.read:r:/%2A",
	"+fs.read:r:/%25",
	"+fs.read:r:/%3A%3B%2C",
	"+fs.read:r:/%C3%A9",
	"+fs.read:r:/%01%FF",
	"+fs.read:r:/a%20*%20",
	"-fs.read:r:a",
	"-fs.read:r:a/b",
	"-fs.read:r:/a/",
	"-fs.read:r://",
	"-fs.read:r:/a//b",
	"-fs.read:r:/.",
	"-fs.read:r:/..",
	"-fs.read:r:/a/./b",
	"-fs.read:r:/a/../b",
	"-fs.read:r:/***",
	"-fs.read:r:/a**",
	"-fs.read:r:/**a",
	"-fs.read:r:/a*b*",
	"-fs.read:r:/**/a",
	"-fs.read:r:/**/**",
	"-fs.read:r:/a/**/",
	"-fs.read:r:/%41",
	"-fs.read:r:/%2E",
	"-fs.read:r:/%2e",
	"-fs.read:r:/%c3%a9",
	"-fs.read:r:/%00",
	"-fs.read:r:/%2F",
	"-fs.read:r:/%",
	"-fs.read:r:/%2",
	"-fs.read:r:/%2G",
	"-fs.read:r:/%7E",
	"-fs.read:r:/a,b",
	"-fs.read:r:/a:b",
	"-fs.read:r:/a!b",
	"-fs.read:r:/a\"b",
	"-fs.read:r:/a\\b",
	"-fs.read:r:/a?b",
	"-fs.read:r:/a#b",
};

static const char *const hosts[] = {
	"+net.connect:r:tcp/**:443",
	"+net.connect:r:tcp/localhost:1",
	"+net.connect:r:tcp/intranet:65535",
	"+net.connect:r:tcp/a.b:1-65535",
	"+net.connect:r:tcp/*.example.com:443",
	"+net.connect:r:tcp/**.example.com:443",
	"+net.connect:r:tcp/xn--bcher-kva.example:443",
	"+net.connect:r:tcp/a--b.example:443",
	"+net.connect:r:tcp/a.b0x1:443",
	"+net.connect:r:tcp/a.0xg:443",
	"+net.connect:r:tcp/1.2.3.4a:443",
	"+net.connect:r:tcp/0x7f.1.com:443",
	"+net.connect:r:tcp/localhost.example:443",
	"+net.connect:r:tcp/mylocalhost:443",
	"+net.connect:r:tcp/" L63 ".com:443",
	"-net.connect:r:tcp/" L63 "4.com:443",
	"-net.connect:r:tcp/ab--c.example:443",
	"-net.connect:r:tcp/xn--.example:443",
	"-net.connect:r:tcp/-a.b:443",
	"-net.connect:r:tcp/a-.b:443",
	"-net.connect:r:tcp/a_b.c:443",
	"-net.connect:r:tcp/A.b:443",
	"-net.connect:r:tcp/a..b:443",
	"-net.connect:r:tcp/.a.b:443",
	"-net.connect:r:tcp/a.b.:443",
	"-net.connect:r:tcp/:443",
	"-net.connect:r:tcp/*:443",
	"-net.connect:r:tcp/***:443",
	"-net.connect:r:tcp/*.com:443",
	"-net.connect:r:tcp/**.com:443",
	"-net.connect:r:tcp/*.*.example.com:443",
	"-net.connect:r:tcp/a.*.example.com:443",
	"-net.connect:r:tcp/*a.example.com:443",
	"-net.connect:r:tcp/**example.com:443",
	"-net.connect:r:tcp/a.1:443",
	"-net.connect:r:tcp/a.0x:443",
	"-net.connect:r:tcp/a.0x1f:443",
	"-net.connect:r:tcp/*.a.0x1f:443",
	"-net.connect:r:tcp/12345:443",
	"-net.connect:r:tcp/a.localhost:443",
	"-net.connect:r:tcp/*.localhost:443",
	"-net.connect:r:tcp/*.a.localhost:443",
	"-net.connect:r:tcp/**.a.localhost:443",
	"-net.connect:r:udp/a.b:443",
	"-net.connect:r:a.b:443",
	"-net.connect:r:tcp/a.b",
	"-net.connect:r:tcp/a.b:",
	"-net.connect:r:tcp/a.b:0",
	"-net.connect:r:tcp/a.b:080",
	"-net.connect:r:tcp/a.b:65536",
	"-net.connect:r:tcp/a.b:1-1",
	"-net.connect:r:tcp/a.b:2-1",
	"-net.connect:r:tcp/a.b:0-1",
	"-net.connect:r:tcp/a.b:1-65536",
	"-net.connect:r:tcp/a.b:1-",
	"-net.connect:r:tcp/a.b:-1",
	"-net.connect:r:tcp/a.b:1-2-3",
	"-net.connect:r:tcp/a.b:*",
	"-net.connect:r:tcp/a.b/8:443",
};

static const char *const addresses[] = {
	"+net.connect:r:tcp/1.2.3.4:443",
	"+net.connect:r:tcp/255.255.255.255:443",
	"+net.connect:r:tcp/10.0.0.0/8:443",
	"+net.connect:r:tcp/128.0.0.0/1:443",
	"+net.connect:r:tcp/10.0.0.2/31:443",
	"+net.connect:r:tcp/[2001:db8::1]:443",
	"+net.connect:r:tcp/[2001:db8::]/32:443",
	"+net.connect:r:tcp/[8000::]/1:443",
	"+net.connect:r:tcp/[::2]/127:443",
	"+net.connect:r:tcp/[::2]:443",
	"+net.connect:r:tcp/[1:2:3:4:5:6:7:8]:443",
	"+net.connect:r:tcp/[1:0:3:4:5:6:7:8]:443",
	"+net.connect:r:tcp/[1::4:5:6:7:8]:443",
	"+net.connect:r:tcp/[2001:db8::1:0:0:1]:443",
	"+net.connect:r:tcp/[1:0:0:2::3]:443",
	"+net.connect:r:tcp/[fe80::]/10:443",
	"+net.connect:r:tcp/[1::]:443",
	"-net.connect:r:tcp/1.2.3:443",
	"-net.connect:r:tcp/1.2.3.4.5:443",
	"-net.connect:r:tcp/1.2.3.256:443",
	"-net.connect:r:tcp/1.2.3.04:443",
	"-net.connect:r:tcp/0x1.2.3.4:443",
	"-net.connect:r:tcp/1.2.3.4/32:443",
	"-net.connect:r:tcp/10.0.0.0/0:443",
	"-net.connect:r:tcp/0.0.0.0/0:443",
	"-net.connect:r:tcp/10.0.0.0/08:443",
	"-net.connect:r:tcp/10.0.0.0/:443",
	"-net.connect:r:tcp/10.0.0.1/8:443",
	"-net.connect:r:tcp/10.0.0.0/33:443",
	"-net.connect:r:tcp/127.0.0.1:443",
	"-net.connect:r:tcp/127.0.0.0/8:443",
	"-net.connect:r:tcp/127.255.0.0/16:443",
	"-net.connect:r:tcp/96.0.0.0/3:443",
	"-net.connect:r:tcp/0.0.0.0:443",
	"-net.connect:r:tcp/0.1.2.3:443",
	"-net.connect:r:tcp/0.0.0.0/1:443",
	"-net.connect:r:tcp/[::1]:443",
	"-net.connect:r:tcp/[::]:443",
	"-net.connect:r:tcp/[::]/127:443",
	"-net.connect:r:tcp/[::]/1:443",
	"-net.connect:r:tcp/[::]/0:443",
	"-net.connect:r:tcp/2001:db8::1:443",
	"-net.connect:r:tcp/[2001:DB8::1]:443",
	"-net.connect:r:tcp/[2001:0db8::1]:443",
	"-net.connect:r:tcp/[2001:db8:0:0:0:0:0:1]:443",
	"-net.connect:r:tcp/[2001:db8::1::2]:443",
	"-net.connect:r:tcp/[2001:db8:0:0:1::1]:443",
	"-net.connect:r:tcp/[1::0:4:5:6:7:8]:443",
	"-net.connect:r:tcp/[1::3:4:5:6:7:8]:443",
	"-net.connect:r:tcp/[1:2:3:4:5:6:7]:443",
	"-net.connect:r:tcp/[1:2:3:4:5:6:7:8:9]:443",
	"-net.connect:r:tcp/[1:2:3:4:5:6:7:8::]:443",
	"-net.connect:r:tcp/[:1:2:3:4:5:6:7]:443",
	"-net.connect:r:tcp/[1:2:3:4:5:6:7:]:443",
	"-net.connect:r:tcp/[12345::]:443",
	"-net.connect:r:tcp/[fe80::1%25eth0]:443",
	"-net.connect:r:tcp/[fe80::1%eth0]:443",
	"-net.connect:r:tcp/[2001:db8::1.2.3.4]:443",
	"-net.connect:r:tcp/[::ffff:1.2.3.4]:443",
	"-net.connect:r:tcp/[::ffff:102:304]:443",
	"-net.connect:r:tcp/[::ffff:0:0]/96:443",
	"-net.connect:r:tcp/[::ffff:a00:0]/104:443",
	"-net.connect:r:tcp/[2001:db8::1]/128:443",
	"-net.connect:r:tcp/[2001:db8::1]/32:443",
	"-net.connect:r:tcp/[]:443",
	"-net.connect:r:tcp/[:]:443",
	"-net.connect:r:tcp/[2001:db8::1:443",
	"-net.connect:r:tcp/[1.2.3.4]:443",
};

#define GET ";m=GET;q=any"

static const char *const urls[] = {
	"+http.request:r:https://a.b:443/" GET,
	"+http.request:r:http://a.b:80/**" GET,
	"+http.request:r:https://**:443/a" GET,
	"+http.request:r:https://**.a.b:443/a/" GET,
	"+http.request:r:https://*.a.b:443/a/**" GET,
	"+http.request:r:https://localhost:8080/a*b/*" GET,
	"+http.request:r:https://1.2.3.4:443/*/" GET,
	"+http.request:r:https://[2001:db8::1]:443/%20" GET,
	"-http.request:r:https://a.b:443" GET,
	"-http.request:r:https://a.b/" GET,
	"-http.request:r:https://a.b:1-2/" GET,
	"-http.request:r:https://a.b:0/" GET,
	"-http.request:r:https://10.0.0.0/8:443/" GET,
	"-http.request:r:https://[2001:db8::]/32:443/" GET,
	"-http.request:r:https://127.0.0.1:443/" GET,
	"-http.request:r:https://[::1]:443/" GET,
	"-http.request:r:https://u@a.b:443/" GET,
	"-http.request:r:HTTPS://a.b:443/" GET,
	"-http.request:r:ftp://a.b:443/" GET,
	"-http.request:r:https:a.b:443/" GET,
	"-http.request:r:https://:443/" GET,
	"-http.request:r:https://a.b:443//" GET,
	"-http.request:r:https://a.b:443/a//" GET,
	"-http.request:r:https://a.b:443/a//b" GET,
	"-http.request:r:https://a.b:443/**/" GET,
	"-http.request:r:https://a.b:443/a/**/b" GET,
	"-http.request:r:https://a.b:443/./" GET,
	"-http.request:r:https://a.b:443/.." GET,
	"-http.request:r:https://a.b:443/a?b" GET,
	"-http.request:r:https://a.b:443/%2F" GET,
	"-http.request:r:https://a.b:443/%61" GET,
};

/* --- Section 2 --- */

static const char *const actions[] = {
	"+fs.write:r:/a",
	"+fs.put:r:/a",
	"+proc.exec:r:/usr/bin/*",
	"+proc.exec:r:/**",
	"+net.bind:r:tcp/localhost:8080",
	"+net.bind:r:tcp/localhost:1-65535",
	"-net.bind:r:tcp/a.b:8080",
	"-net.bind:r:tcp/**:8080",
	"-net.bind:r:tcp/localhost",
	"-net.bind:r:tcp/localhost:",
	"-net.bind:r:tcp/localhost:0",
	"-net.bind:r:tcp/localhost:1:2",
	"-net.bind:r:tcp/localhost:80;priv=10.0.0.1",
	"+unix.connect:r:/run/x.sock",
	"+unix.connect:r:/run/x.sock;danger=1",
	"-unix.connect:r:/",
	"-unix.connect:r:/**",
	"-unix.connect:r:/run/*",
	"-unix.connect:r:/run/**",
	"-unix.connect:r:/run/x*",
	"+env.pass:r:/PATH",
	"+env.pass:r:/LC_*",
	"+env.pass:r:/*",
	"-env.pass:r:/",
	"-env.pass:r:/**",
	"-env.pass:r:/A/B",
	"-env.pass:r:/A/**",
	"+secret.use:r:/k;as=env;to=https://a.b:443/**",
	"-secret.use:r:/k*;as=env;to=https://a.b:443/**",
	"-secret.use:r:/;as=env;to=https://a.b:443/**",
	"-secret.use:r:/k/l;as=env;to=https://a.b:443/**",
	"-secret.use:r:/k;as=env",
	"-secret.use:r:/k;to=https://a.b:443/**",
	"-secret.use:r:/k",
	"+dev.use:r:/dev/null;o=rw",
	"+dev.use:r:/dev/dri/card*;o=r",
	"+dev.use:r:/dev/*;o=r",
	"-dev.use:r:/dev/null",
	"-dev.use:r:/dev;o=r",
	"-dev.use:r:/dev/**;o=r",
	"-dev.use:r:/dev/dri/**;o=r",
	"-dev.use:r:/sys/x;o=r",
	"-dev.use:r:/*/null;o=r",
	"-dev.use:r:/d*/null;o=r",
	"-dev.use:r:/;o=r",
	"+git.use:r:https://a.b:443/x/y.git;op=fetch",
	"+git.use:r:https://host:443/x;op=push;ref=refs/heads/x",
	"+git.use:r:ssh://git@a.b:22/x/y.git;op=fetch,push;ref=refs/heads/**",
	"+git.use:r:ssh://a.b:22/x;op=fetch",
	"+git.use:r:ssh://g.i_t~+-@a.b:22/x;op=fetch",
	"+git.use:r:ssh://a.b:22/x@y=z;op=fetch",
	"-git.use:r:https://git@a.b:443/x;op=fetch",
	"-git.use:r:ssh://@a.b:22/x;op=fetch",
	"-git.use:r:ssh://a=b@a.b:22/x;op=fetch",
	"-git.use:r:ssh://a@b@a.b:22/x;op=fetch",
	"-git.use:r:ssh://a:b@a.b:22/x;op=fetch",
	"-git.use:r:http://a.b:80/x;op=fetch",
	"-git.use:r:https://a.b/x;op=fetch",
	"-git.use:r:https://a.b:443/;op=fetch",
	"-git.use:r:https://a.b:443;op=fetch",
	"-git.use:r:https://a.b:443/x/;op=fetch",
	"-git.use:r:https://a.b:443/*;op=fetch",
	"-git.use:r:https://a.b:443/x/**;op=fetch",
	"-git.use:r:https://*.a.b:443/x;op=fetch",
	"-git.use:r:https://**:443/x;op=fetch",
	"-git.use:r:https://1.2.3.4:443/x;op=fetch",
	"-git.use:r:https://[2001:db8::1]:443/x;op=fetch",
	"-git.use:r:https://a.b:1-2/x;op=fetch",
	"-git.use:r:https://a.b:443/x",
	"-git.use:r:https://a.b:443/x;op=push",
	"-git.use:r:https://a.b:443/x;op=fetch,push",
	"-git.use:r:https://a.b:443/x;op=fetch;ref=a",
	"-git.use:r:https://a.b:443/x;ref=a",
	"+tool.call:r:/srv/tool",
	"+tool.call:r:/**",
	"+tool.call:r:/srv/*",
	"-tool.call:r:/",
	"+agent.spawn:r:/helper",
	"+agent.spawn:r:/*",
	"-agent.spawn:r:/a/b",
	"-agent.spawn:r:/**",
	"+kernel.use:r:/io_uring",
	"+kernel.use:r:/nested-userns",
	"+kernel.use:r:/ptrace-own",
	"-kernel.use:r:/ptrace",
	"-kernel.use:r:/*",
	"-kernel.use:r:/",
	"-kernel.use:r:/io_uring/x",
	"-kernel.use:r:/io_*",
	"+state.use:r:/cache",
	"+state.use:r:/c*",
	"-state.use:r:/",
	"-state.use:r:/a/b",
	"-http.request:r:https://a.b:443/",
	"-http.request:r:https://a.b:443/;m=GET",
	"-http.request:r:https://a.b:443/;q=any",
	"-http.request:r:https://a.b:443/;q=any;m=GET",
	"-net.connect:r:tcp/a.b:443;m=GET",
	"-net.connect:r:tcp/a.b:443;tls=pass",
	"-net.connect:r:tcp/a.b:443;danger=1",
	"-fs.read:r:/a;max-in=1",
	("-fs.read:r:/a;sha256=" HEX64),
	"-fs.read:r:/a;args=/",
	"-unix.connect:r:/a;o=r",
};

#define EXEC "proc.exec:r:/a;"
#define NET "net.connect:r:tcp/a.b:443;"
#define SECRET "secret.use:r:/k;"
#define GIT "git.use:r:https://a.b:443/x;op=push;ref="
#define HTTP "http.request:r:https://a.b:443/;"

static const char *const params[] = {
	"+" EXEC "approve=a",
	"+" EXEC "approve=a,b,c.d_e-f",
	"-" EXEC "approve=b,a",
	"-" EXEC "approve=a,a",
	"-" EXEC "approve=a,",
	"-" EXEC "approve=,a",
	"-" EXEC "approve=A",
	"-" EXEC "approve=-a",
	"+" EXEC "args=/",
	"+" EXEC "args=/**",
	"+" EXEC "args=/ls/-l/**",
	"+" EXEC "args=/./../%2Fetc%2Fpasswd/*",
	"+" EXEC "args=/a%20b/%2F*",
	"-" EXEC "args=ls",
	"-" EXEC "args=/ls/",
	"-" EXEC "args=/ls//x",
	"-" EXEC "args=/**/x",
	"-" EXEC "args=/%00",
	"-" EXEC "args=/%2E",
	"+" SECRET "as=basic;to=https://a.b:443/",
	"+" SECRET "as=bearer;to=http://**.a.b:80/**",
	"+" SECRET "as=header:x-api-key;to=https://a.b:443/",
	"+" SECRET "as=query:api_Key.1-2;to=https://a.b:443/",
	"+" SECRET "as=header:" HEX64 ";to=https://a.b:443/",
	"-" SECRET "as=header:" HEX64 "0;to=https://a.b:443/",
	"-" SECRET "as=header:;to=https://a.b:443/",
	"-" SECRET "as=header;to=https://a.b:443/",
	"-" SECRET "as=header:X;to=https://a.b:443/",
	"-" SECRET "as=header:a_b;to=https://a.b:443/",
	"-" SECRET "as=query:a~b;to=https://a.b:443/",
	"-" SECRET "as=query:a=b;to=https://a.b:443/",
	"-" SECRET "as=query:;to=https://a.b:443/",
	"-" SECRET "as=query:a:b;to=https://a.b:443/",
	"-" SECRET "as=basic:a;to=https://a.b:443/",
	"-" SECRET "as=cookie;to=https://a.b:443/",
	"-" SECRET "as=env;to=a.b:443",
	"-" SECRET "as=env;to=https://a.b:443",
	"-" SECRET "as=env;to=https://10.0.0.0/8:443/",
	"-unix.connect:r:/a;danger=0",
	"-unix.connect:r:/a;danger=11",
	"+" HTTP "m=*;q=none",
	"+" HTTP "m=DELETE,GET,PATCH;q=none",
	"+" HTTP "m=ABCDEFGHIJKLMNOP;q=none",
	"-" HTTP "m=ABCDEFGHIJKLMNOPQ;q=none",
	"-" HTTP "m=GET,DELETE;q=none",
	"-" HTTP "m=GET,GET;q=none",
	"-" HTTP "m=get;q=none",
	"-" HTTP "m=*,GET;q=none",
	"-" HTTP "m=M-SEARCH;q=none",
	"-" HTTP "m=GET;q=some",
	"+" HTTP "m=GET;max-in=1;max-out=9007199254740991;q=any",
	"-" HTTP "m=GET;max-in=0;q=any",
	"-" HTTP "m=GET;max-in=01;q=any",
	"-" HTTP "m=GET;max-out=9007199254740992;q=any",
	"-" HTTP "m=GET;max-out=1;max-in=1;q=any",
	"+" NET "n=9007199254740991",
	"-" NET "n=0",
	"-" NET "n=-1",
	"-" NET "n=+1",
	"-" NET "n=1k",
	"-dev.use:r:/dev/a;o=w",
	"-dev.use:r:/dev/a;o=wr",
	"-git.use:r:https://a.b:443/x;op=push,fetch;ref=a",
	"-git.use:r:https://a.b:443/x;op=clone",
	"-git.use:r:https://a.b:443/x;op=fetch,fetch",
	"+" NET "priv=10.0.0.0/8",
	"+" NET "priv=10.0.0.0/8,192.168.0.0/16,[fc00::]/7",
	"+" NET "priv=10.0.0.1,10.0.0.2",
	"+" NET "priv=10.0.0.10,10.0.0.9",
	"+" NET "priv=[fe80::1],[fe80::2]",
	"-" NET "priv=10.0.0.0,10.0.0.1",
	"-" NET "priv=10.0.0.0/9,10.128.0.0/9",
	"-" NET "priv=10.0.0.0/8,10.1.0.0/16",
	"-" NET "priv=10.0.0.0/8,10.1.0.0/16,9.0.0.0/8",
	"-" NET "priv=10.0.0.1,10.0.0.1",
	"-" NET "priv=192.168.0.0/16,10.0.0.0/8",
	"-" NET "priv=[fe80::2],[fe80::3]",
	"-" NET "priv=127.0.0.1",
	"-" NET "priv=[::1]",
	"-" NET "priv=a.b",
	"-" NET "priv=**",
	"-" NET "priv=fe80::1",
	"-" NET "priv=10.0.0.0/8,",
	"-net.connect:r:tcp/10.0.0.1:443;priv=10.0.0.1",
	"-net.connect:r:tcp/10.0.0.0/8:443;priv=10.0.0.1",
	"-http.request:r:https://[fe80::1]:443/;m=GET;priv=10.0.0.1;q=any",
	"+http.request:r:https://**:443/;m=GET;priv=10.0.0.1;q=any",
	"+" NET "rate=1/1",
	"+" NET "rate=9007199254740991/9007199254740991",
	"-" NET "rate=0/1",
	"-" NET "rate=1/0",
	"-" NET "rate=1",
	"-" NET "rate=1/",
	"-" NET "rate=/1",
	"-" NET "rate=1/1/1",
	"-" NET "rate=1/1s",
	"+" GIT "main",
	"+" GIT "refs/heads/agent*/**",
	"+" GIT "*",
	"+" GIT "a%5Eb",
	"-" GIT "/main",
	"-" GIT "main/",
	"-" GIT "**",
	"-" GIT "a//b",
	"-" GIT "a/../b",
	"-" GIT "a/**/b",
	"+" EXEC "sha256=" HEX64,
	"+" EXEC "sha256=" HEX64 "," HEX64B,
	"-" EXEC "sha256=" HEX64B "," HEX64,
	"-" EXEC "sha256=" HEX64 "0",
	"-" EXEC "sha256=0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
	"+http.request:r:https://a.b:443/**;m=*;q=any;tls=pass",
	"+http.request:r:https://a.b:443/**;approve=x;m=*;max-in=1;max-out=1;q=any;tls=pass",
	"-http.request:r:http://a.b:443/**;m=*;q=any;tls=pass",
	"-http.request:r:https://a.b:443/a/**;m=*;q=any;tls=pass",
	"-http.request:r:https://a.b:443/;m=*;q=any;tls=pass",
	"-http.request:r:https://a.b:443/**;m=GET;q=any;tls=pass",
	"-http.request:r:https://a.b:443/**;m=*;q=none;tls=pass",
	"-http.request:r:https://a.b:443/**;m=*;n=1;q=any;tls=pass",
	"-http.request:r:https://a.b:443/**;m=*;q=any;rate=1/1;tls=pass",
	"-http.request:r:https://a.b:443/**;m=*;q=any;tls=sni",
};

/* --- Section 3 --- */

static const char *const requests[] = {
	"+fs.read:r:/",
	"+fs.read:r:/a/%2A",
	"-fs.read:r:/a/*",
	"-fs.read:r:/a*",
	"-fs.read:r:/a/**",
	"-fs.read:r:/**",
	"-fs.read:r:/a;approve=x",
	"-fs.read:r:/a;n=1",
	"-fs.read:r:/a;rate=1/1",
	"+net.connect:r:tcp/a.b:443",
	"+net.connect:r:tcp/localhost:443",
	"+net.connect:r:tcp/1.2.3.4:443",
	"+net.connect:r:tcp/[2001:db8::1]:443;tls=sni",
	"+net.connect:r:tcp/a.b:443;priv=10.0.0.1;tls=sni",
	"-net.connect:r:tcp/a.b:443;tls=pass",
	"-net.connect:r:tcp/a.b:1-2",
	"-net.connect:r:tcp/**:443",
	"-net.connect:r:tcp/*.a.b:443",
	"-net.connect:r:tcp/10.0.0.0/8:443",
	"-net.connect:r:tcp/127.0.0.1:443",
	"-net.connect:r:tcp/a.b:443;max-in=1",
	"-net.connect:r:tcp/a.b:443;max-out=1",
	"-net.connect:r:tcp/a.b:443;priv=10.0.0.0/8",
	"-net.connect:r:tcp/a.b:443;priv=10.0.0.1,10.0.0.4",
	"-net.connect:r:tcp/10.0.0.1:443;priv=10.0.0.1",
	"+net.bind:r:tcp/localhost:80",
	"-net.bind:r:tcp/localhost:80-81",
	"+http.request:r:https://a.b:443/a/;m=GET;q=none",
	"+http.request:r:http://a.b:80/;m=GET;priv=10.0.0.1;q=any",
	"-http.request:r:https://a.b:443/a/;m=GET,PUT;q=none",
	"-http.request:r:https://a.b:443/a/;m=*;q=none",
	"-http.request:r:https://a.b:443/**;m=GET;q=none",
	"-http.request:r:https://a.b:443/*;m=GET;q=none",
	"-http.request:r:https://**:443/;m=GET;q=none",
	"-http.request:r:https://a.b:443/;m=GET",
	"-http.request:r:https://a.b:443/;q=any",
	"-http.request:r:https://a.b:443/;m=GET;q=none;tls=sni",
	"+proc.exec:r:/bin/ls",
	"+proc.exec:r:/bin/ls;args=/;sha256=" HEX64,
	"+proc.exec:r:/bin/ls;args=/ls/..",
	"-proc.exec:r:/bin/ls;args=/*",
	"-proc.exec:r:/bin/ls;args=/**",
	"-proc.exec:r:/bin/ls;sha256=" HEX64 "," HEX64B,
	"+unix.connect:r:/a",
	"-unix.connect:r:/a;danger=1",
	"+env.pass:r:/A",
	"-env.pass:r:/*",
	"+git.use:r:https://a.b:443/x;op=fetch",
	"+git.use:r:https://a.b:443/x;op=push;ref=a/b",
	"-git.use:r:https://a.b:443/x;op=fetch,push;ref=a",
	"-git.use:r:https://a.b:443/x;op=push",
	"-git.use:r:https://a.b:443/x;op=push;ref=a/*",
	"-git.use:r:https://a.b:443/x;op=push;ref=a/**",
	"-git.use:r:https://a.b:443/x;op=fetch;ref=a",
	"-git.use:r:https://a.b:443/x",
	"+dev.use:r:/dev/null;o=r",
	"+dev.use:r:/dev/null;o=rw",
	"-dev.use:r:/dev/null",
	"-dev.use:r:/dev/*;o=r",
	"+secret.use:r:/k;as=bearer;to=https://a.b:443/x",
	"-secret.use:r:/k;as=bearer",
	"-secret.use:r:/k;to=https://a.b:443/x",
	"-secret.use:r:/k;as=bearer;to=https://a.b:443/**",
	"-secret.use:r:/k;as=bearer;to=https://**:443/x",
	"+kernel.use:r:/io_uring",
	"+tool.call:r:/a/b",
	"-tool.call:r:/a/**",
	"+state.use:r:/a",
	"+agent.spawn:r:/a",
};

/* --- Section 6 --- */

static const char *const denials[] = {
	"+fs.read:r:/**",
	"+fs.read:r:/a/**",
	"+fs.write:r:/**/.env/**",
	"+fs.put:r:/w/**/*.pem/**",
	"+proc.exec:r:/a/**/b/c/**",
	"-fs.read:r:/a",
	"-fs.read:r:/",
	"-fs.read:r:/**/a",
	"-fs.read:r:/**/**",
	"-fs.read:r:/a/**/**",
	"-fs.read:r:/**/a/**/b/**",
	"-fs.read:r:/a**/**",
	"-fs.read:r:/a/**;n=1",
	"-tool.call:r:/**/a/**",
	"+tool.call:r:/a/**",
	"+tool.call:r:/a",
	"+net.connect:r:tcp/**:1-65535",
	"+net.connect:r:tcp/0.0.0.0/0:80",
	"+net.connect:r:tcp/[::]/0:80",
	"+net.connect:r:tcp/127.0.0.1:80",
	"+net.connect:r:tcp/127.0.0.0/8:80",
	"+net.connect:r:tcp/[::1]:80",
	"+net.connect:r:tcp/*.a.b:80",
	"-net.connect:r:tcp/1.0.0.0/0:80",
	"-net.connect:r:tcp/10.0.0.0/32:80",
	"-net.connect:r:tcp/[::ffff:1.2.3.4]:80",
	"-net.connect:r:tcp/[::ffff:102:304]:80",
	"-net.connect:r:tcp/a.localhost:80",
	"-net.connect:r:tcp/a.b:80;priv=10.0.0.1",
	"+net.bind:r:tcp/localhost:1-1023",
	"+http.request:r:https://a.b:443/a",
	"+http.request:r:https://**:443/**",
	"-http.request:r:https://a.b:443/a;m=GET;q=any",
	"-http.request:r:https://127.0.0.1:443/a",
	"-http.request:r:https://0.0.0.0/0:443/a",
	"+git.use:r:https://a.b:443/x",
	"-git.use:r:https://a.b:443/x;op=push;ref=a",
	"+secret.use:r:/k",
	"-secret.use:r:/k;as=env;to=https://a.b:443/",
	"+dev.use:r:/dev/kvm",
	"-dev.use:r:/dev/kvm;o=r",
	"-dev.use:r:/dev/**",
	"+env.pass:r:/AWS_*",
	"+unix.connect:r:/run/docker.sock",
	"-unix.connect:r:/run/**",
	"+kernel.use:r:/io_uring",
};

static void test_sizes(void)
{
	scoped_buf b = BUF_INIT(100000);
	struct cap c;

	buf_str(&b, "fs.read:r:");
	for (int i = 0; i < CAP_SEGS_MAX; i++)
		buf_str(&b, "/a");
	ok(parses(CAP_REQUEST, buf_view(&b), &c), "128 segments");
	buf_str(&b, "/**");
	ok(parses(CAP_GRANT, buf_view(&b), &c), "128 segments and a double star");
	ok(parses(CAP_DENIAL, buf_view(&b), &c), "also in a denial");
	b.n -= 3;
	buf_str(&b, "/a");
	ok(!parses(CAP_REQUEST, buf_view(&b), &c), "129 segments");
	b.n = 0;
	buf_str(&b, "fs.read:r:/");
	buf_fill(&b, 'a', CAP_TEXT_MAX - b.n);
	ok(parses(CAP_REQUEST, buf_view(&b), &c), "4096 bytes");
	buf_ch(&b, 'a');
	ok(!parses(CAP_REQUEST, buf_view(&b), &c), "4097 bytes");
	b.n = 0;
	buf_str(&b, "net.connect:r:tcp/");
	for (int i = 0; i < 126; i++)
		buf_str(&b, "a.");
	buf_str(&b, "b:1");
	ok(parses(CAP_GRANT, buf_view(&b), &c) && c.host.name.n == 253, "a name of 253 bytes");
	b.n = 0;
	buf_str(&b, "net.connect:r:tcp/");
	for (int i = 0; i < 126; i++)
		buf_str(&b, "a.");
	buf_str(&b, "bc:1");
	ok(!parses(CAP_GRANT, buf_view(&b), &c), "a name of 254 bytes");
	ok(!parses(CAP_GRANT, SV("fs.read:r:/a\0b"), &c), "a NUL inside");
	ok(!parses(CAP_GRANT, SV("fs.read:r:/a\n"), &c), "a newline behind");
	ok(!parses(CAP_GRANT, SV("fs.read:r:/a\t"), &c), "a tab behind");
}

static void test_lit(void)
{
	static const char lit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "._~+@=-";
	bool same = true;

	for (int c = 0; c < 256; c++)
		same = same && cap_is_lit((char)c) == (c && strchr(lit, c) != NULL);
	ok(same, "the table of literal bytes is the list of the text");
}

int main(void)
{
	CHECK(CAP_GRANT, "shape", shapes);
	CHECK(CAP_GRANT, "path", paths);
	CHECK(CAP_GRANT, "host", hosts);
	CHECK(CAP_GRANT, "address", addresses);
	CHECK(CAP_GRANT, "url", urls);
	CHECK(CAP_GRANT, "action", actions);
	CHECK(CAP_GRANT, "param", params);
	CHECK(CAP_REQUEST, "request", requests);
	CHECK(CAP_DENIAL, "denial", denials);
	test_sizes();
	test_lit();
	arena_clear(&arena);
	return tap_done();
}

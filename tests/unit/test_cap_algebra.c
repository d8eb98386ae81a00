#include "tap.h"

#include "cap/cap.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX64B "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct arena arena = ARENA_INIT(64 << 20);

static struct cap parse(enum cap_kind kind, const char *text)
{
	struct writ_err err = { 0 };
	struct cap c = { 0 };

	if (cap_parse(&arena, kind, sv_from(text), &c, &err) < 0)
		ok(false, "%s: %s", text, err.what);
	return c;
}

struct pair {
	bool want;
	const char *a, *b;
};

/* --- Section 3 --- */

#define HTTPS "http.request:r:https://a.b:443"

static const struct pair matches[] = {
	/* Segments and paths. */
	{ true, "fs.read:r:/a", "fs.read:r:/a" },
	{ false, "fs.read:r:/a", "fs.read:s:/a" },
	{ false, "fs.read:r:/a", "fs.write:r:/a" },
	{ false, "fs.read:r:/a", "fs.read:r:/a/b" },
	{ false, "fs.read:r:/a", "fs.read:r:/" },
	{ false, "fs.read:r:/a", "fs.read:r:/ab" },
	{ true, "fs.read:r:/ab*b", "fs.read:r:/abb" },
	{ false, "fs.read:r:/ab*b", "fs.read:r:/ab" },
	{ true, "fs.read:r:/a*", "fs.read:r:/a" },
	{ true, "fs.read:r:/*", "fs.read:r:/.hidden" },
	{ false, "fs.read:r:/*", "fs.read:r:/" },
	{ false, "fs.read:r:/*", "fs.read:r:/a/b" },
	{ true, "fs.read:r:/%20*", "fs.read:r:/%20a" },
	{ true, "fs.read:r:/a/**", "fs.read:r:/a" },
	{ true, "fs.read:r:/a/**", "fs.read:r:/a/b/c" },
	{ false, "fs.read:r:/a/**", "fs.read:r:/ab" },
	{ false, "fs.read:r:/a/**", "fs.read:r:/" },
	{ true, "fs.read:r:/**", "fs.read:r:/" },
	{ true, "fs.read:r:/", "fs.read:r:/" },
	{ false, "fs.read:r:/", "fs.read:r:/a" },
	{ true, "fs.write:r:/a", "fs.put:r:/a" },
	{ false, "fs.put:r:/a", "fs.write:r:/a" },
	/* Hosts and ports. */
	{ true, "net.connect:r:tcp/*.a.b:443", "net.connect:r:tcp/x.a.b:443" },
	{ false, "net.connect:r:tcp/*.a.b:443", "net.connect:r:tcp/x.y.a.b:443" },
	{ false, "net.connect:r:tcp/*.a.b:443", "net.connect:r:tcp/a.b:443" },
	{ false, "net.connect:r:tcp/*.a.b:443", "net.connect:r:tcp/xa.b:443" },
	{ true, "net.connect:r:tcp/**.a.b:443", "net.connect:r:tcp/x.a.b:443" },
	{ true, "net.connect:r:tcp/**.a.b:443", "net.connect:r:tcp/x.y.a.b:443" },
	{ false, "net.connect:r:tcp/**.a.b:443", "net.connect:r:tcp/a.b:443" },
	{ false, "net.connect:r:tcp/**.a.b:443", "net.connect:r:tcp/xa.b:443" },
	{ false, "net.connect:r:tcp/*.a.b:443", "net.connect:r:tcp/xxa.b:443" },
	{ false, "net.connect:r:tcp/**.a.b:443", "net.connect:r:tcp/x.ya.b:443" },
	{ true, "net.connect:r:tcp/**:443", "net.connect:r:tcp/a.b:443" },
	{ false, "net.connect:r:tcp/**:443", "net.connect:r:tcp/localhost:443" },
	{ false, "net.connect:r:tcp/**:443", "net.connect:r:tcp/1.2.3.4:443" },
	{ true, "net.connect:r:tcp/localhost:443", "net.connect:r:tcp/localhost:443" },
	{ true, "net.connect:r:tcp/10.0.0.0/8:443", "net.connect:r:tcp/10.2.3.4:443" },
	{ false, "net.connect:r:tcp/10.0.0.0/8:443", "net.connect:r:tcp/11.2.3.4:443" },
	{ false, "net.connect:r:tcp/10.0.0.0/8:443", "net.connect:r:tcp/a.b:443" },
	{ false, "net.connect:r:tcp/10.0.0.0/8:443", "net.connect:r:tcp/[a00::]:443" },
	{ true, "net.connect:r:tcp/[fe80::]/10:443", "net.connect:r:tcp/[febf::1]:443" },
	{ false, "net.connect:r:tcp/[fe80::]/10:443", "net.connect:r:tcp/[fec0::1]:443" },
	{ true, "net.connect:r:tcp/a.b:80-90", "net.connect:r:tcp/a.b:90" },
	{ false, "net.connect:r:tcp/a.b:80-90", "net.connect:r:tcp/a.b:91" },
	{ true, "net.bind:r:tcp/localhost:80-90", "net.bind:r:tcp/localhost:80" },
	{ false, "net.connect:r:tcp/localhost:80", "net.bind:r:tcp/localhost:80" },
	/* priv */
	{ true, "net.connect:r:tcp/a.b:1;priv=10.0.0.0/8", "net.connect:r:tcp/a.b:1" },
	{ true, "net.connect:r:tcp/a.b:1;priv=10.0.0.0/8,172.16.0.0/12",
	  "net.connect:r:tcp/a.b:1;priv=172.31.0.1" },
	{ false, "net.connect:r:tcp/a.b:1;priv=10.0.0.0/8",
	  "net.connect:r:tcp/a.b:1;priv=192.168.0.1" },
	{ false, "net.connect:r:tcp/a.b:1", "net.connect:r:tcp/a.b:1;priv=10.0.0.1" },
	{ false, HTTPS "/**;m=*;q=any", HTTPS "/;m=GET;priv=10.0.0.1;q=none" },
	{ true, HTTPS "/**;m=*;priv=10.0.0.1;q=any", HTTPS "/;m=GET;priv=10.0.0.1;q=none" },
	/* URL paths. */
	{ true, HTTPS "/;m=*;q=any", HTTPS "/;m=GET;q=none" },
	{ true, HTTPS "/**;m=*;q=any", HTTPS "/;m=GET;q=none" },
	{ false, HTTPS "/*;m=*;q=any", HTTPS "/;m=GET;q=none" },
	{ false, HTTPS "/;m=*;q=any", HTTPS "/a;m=GET;q=none" },
	{ true, HTTPS "/a/;m=*;q=any", HTTPS "/a/;m=GET;q=none" },
	{ false, HTTPS "/a/;m=*;q=any", HTTPS "/a;m=GET;q=none" },
	{ false, HTTPS "/a;m=*;q=any", HTTPS "/a/;m=GET;q=none" },
	{ true, HTTPS "/a/**;m=*;q=any", HTTPS "/a;m=GET;q=none" },
	{ true, HTTPS "/a/**;m=*;q=any", HTTPS "/a/;m=GET;q=none" },
	{ false, HTTPS "/a/*;m=*;q=any", HTTPS "/a;m=GET;q=none" },
	{ false, HTTPS "/a/*;m=*;q=any", HTTPS "/a/;m=GET;q=none" },
	{ true, HTTPS "/a/*;m=*;q=any", HTTPS "/a/b;m=GET;q=none" },
	{ false, HTTPS "/**;m=*;q=any", "http.request:r:http://a.b:443/;m=GET;q=none" },
	{ false, HTTPS "/**;m=*;q=any", "http.request:r:https://a.b:444/;m=GET;q=none" },
	{ true, HTTPS "/**;m=GET,PUT;q=any", HTTPS "/;m=PUT;q=any" },
	{ false, HTTPS "/**;m=GET,PUT;q=any", HTTPS "/;m=POST;q=any" },
	{ false, HTTPS "/**;m=GET;q=none", HTTPS "/;m=GET;q=any" },
	{ true, HTTPS "/**;m=GET;q=none", HTTPS "/;m=GET;q=none" },
	/* Connections and requests. */
	{ true, "net.connect:r:tcp/**:443", HTTPS "/x;m=GET;q=any" },
	{ false, "net.connect:r:tcp/**:80", HTTPS "/x;m=GET;q=any" },
	{ false, "net.connect:r:tcp/**:443", HTTPS "/x;m=GET;priv=10.0.0.1;q=any" },
	{ true, HTTPS "/**;m=*;q=any", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ true, HTTPS "/**;approve=x;m=*;max-in=1;q=any", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/**;m=*;q=any", "net.connect:r:tcp/a.b:443" },
	{ false, HTTPS "/**;m=GET;q=any", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/**;m=*;q=none", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/a/**;m=*;q=any", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/**;m=*;n=5;q=any", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/**;m=*;q=any;rate=1/1", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/**;m=*;q=any", "net.connect:r:tcp/a.b:443;priv=10.0.0.1;tls=sni" },
	{ false, "http.request:r:http://a.b:443/**;m=*;q=any",
	  "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, HTTPS "/**;m=*;q=any", "net.connect:r:tcp/a.b:444;tls=sni" },
	/* Programs. */
	{ true, "proc.exec:r:/bin/*", "proc.exec:r:/bin/ls;args=/ls" },
	{ true, "proc.exec:r:/bin/ls;args=/ls/**", "proc.exec:r:/bin/ls;args=/ls" },
	{ true, "proc.exec:r:/bin/ls;args=/**", "proc.exec:r:/bin/ls;args=/" },
	{ true, "proc.exec:r:/bin/ls;args=/ls/*", "proc.exec:r:/bin/ls;args=/ls/.." },
	{ true, "proc.exec:r:/bin/ls;args=/ls/%2Ftmp%2F*",
	  "proc.exec:r:/bin/ls;args=/ls/%2Ftmp%2Fx%2Fy" },
	{ false, "proc.exec:r:/bin/ls;args=/ls", "proc.exec:r:/bin/ls;args=/ls/x" },
	{ false, "proc.exec:r:/bin/ls;args=/**", "proc.exec:r:/bin/ls" },
	{ true, "proc.exec:r:/bin/ls;sha256=" HEX64 "," HEX64B,
	  "proc.exec:r:/bin/ls;sha256=" HEX64B },
	{ false, "proc.exec:r:/bin/ls;sha256=" HEX64, "proc.exec:r:/bin/ls;sha256=" HEX64B },
	{ false, "proc.exec:r:/bin/ls;sha256=" HEX64, "proc.exec:r:/bin/ls" },
	/* The rest. */
	{ true, "dev.use:r:/dev/*;o=rw", "dev.use:r:/dev/null;o=r" },
	{ false, "dev.use:r:/dev/*;o=r", "dev.use:r:/dev/null;o=rw" },
	{ true, "git.use:r:https://a.b:443/x;op=fetch", "git.use:r:https://a.b:443/x;op=fetch" },
	{ false, "git.use:r:https://a.b:443/x;op=fetch", "git.use:r:https://a.b:443/y;op=fetch" },
	{ false, "git.use:r:https://a.b:443/x;op=fetch",
	  "git.use:r:https://a.b:443/x;op=push;ref=a" },
	{ true, "git.use:r:https://a.b:443/x;op=fetch,push;ref=a/**",
	  "git.use:r:https://a.b:443/x;op=push;ref=a" },
	{ false, "git.use:r:https://a.b:443/x;op=fetch,push;ref=a/**",
	  "git.use:r:https://a.b:443/x;op=push;ref=b" },
	{ false, "git.use:r:https://a.b:443/x;op=push;ref=a",
	  "git.use:r:https://a.b:443/x;op=fetch" },
	{ true, "secret.use:r:/k;as=env;to=https://**.a.b:443/**",
	  "secret.use:r:/k;as=env;to=https://x.a.b:443/y" },
	{ false, "secret.use:r:/k;as=env;to=https://**.a.b:443/**",
	  "secret.use:r:/k;as=bearer;to=https://x.a.b:443/y" },
	{ false, "secret.use:r:/k;as=env;to=https://**.a.b:443/**",
	  "secret.use:r:/k;as=env;to=http://x.a.b:443/y" },
	{ false, "secret.use:r:/k;as=env;to=https://**.a.b:443/**",
	  "secret.use:r:/l;as=env;to=https://x.a.b:443/y" },
	{ true, "env.pass:r:/LC_*", "env.pass:r:/LC_ALL" },
	{ true, "unix.connect:r:/a;danger=1", "unix.connect:r:/a" },
	{ true, "tool.call:r:/s/**", "tool.call:r:/s/t" },
	{ true, "kernel.use:r:/io_uring", "kernel.use:r:/io_uring" },
	{ false, "kernel.use:r:/io_uring", "kernel.use:r:/ptrace-own" },
};

/* --- Section 6 --- */

static const struct pair denied[] = {
	{ true, "fs.read:r:/**/.env/**", "fs.read:r:/.env" },
	{ true, "fs.read:r:/**/.env/**", "fs.read:r:/a/b/.env" },
	{ true, "fs.read:r:/**/.env/**", "fs.read:r:/a/.env/c" },
	{ false, "fs.read:r:/**/.env/**", "fs.read:r:/a/env" },
	{ false, "fs.read:r:/**/.env/**", "fs.read:r:/" },
	{ true, "fs.read:r:/w/**/*.pem/**", "fs.read:r:/w/x.pem" },
	{ true, "fs.read:r:/w/**/*.pem/**", "fs.read:r:/w/a/x.pem/b" },
	{ false, "fs.read:r:/w/**/*.pem/**", "fs.read:r:/v/x.pem" },
	{ true, "fs.read:r:/**/a/b/**", "fs.read:r:/a/a/b" },
	{ false, "fs.read:r:/**/a/b/**", "fs.read:r:/a/c/b" },
	{ true, "fs.read:r:/**", "fs.read:r:/" },
	{ false, "fs.read:r:/**", "fs.read:s:/" },
	{ false, "fs.read:r:/**", "fs.write:r:/" },
	{ true, "fs.write:r:/a/**", "fs.put:r:/a/b" },
	{ false, "fs.put:r:/a/**", "fs.write:r:/a/b" },
	{ true, "net.connect:r:tcp/**:80", "net.connect:r:tcp/localhost:80" },
	{ true, "net.connect:r:tcp/**:80", "net.connect:r:tcp/1.2.3.4:80" },
	{ true, "net.connect:r:tcp/**:80", "net.connect:r:tcp/a.b:80;tls=sni" },
	{ true, "net.connect:r:tcp/**:80", "http.request:r:http://[fe80::1]:80/;m=GET;q=any" },
	{ false, "net.connect:r:tcp/**:80", "net.connect:r:tcp/a.b:81" },
	{ true, "net.connect:r:tcp/0.0.0.0/0:80", "net.connect:r:tcp/1.2.3.4:80" },
	{ false, "net.connect:r:tcp/0.0.0.0/0:80", "net.connect:r:tcp/[fe80::1]:80" },
	{ false, "net.connect:r:tcp/0.0.0.0/0:80", "net.connect:r:tcp/a.b:80" },
	{ true, "net.connect:r:tcp/[::]/0:80", "net.connect:r:tcp/[fe80::1]:80" },
	{ false, "net.connect:r:tcp/*.a.b:80", "net.connect:r:tcp/a.b:80" },
	{ true, "http.request:r:https://a.b:443/a", "net.connect:r:tcp/a.b:443" },
	{ true, "http.request:r:http://a.b:443/a", "net.connect:r:tcp/a.b:443;tls=sni" },
	{ false, "http.request:r:http://a.b:443/a", HTTPS "/a;m=GET;q=any" },
	{ true, "http.request:r:https://a.b:443/a", HTTPS "/a;m=GET;q=any" },
	{ false, "http.request:r:https://a.b:443/a", HTTPS "/a/b;m=GET;q=any" },
	{ false, "http.request:r:https://a.b:443/a", "net.connect:r:tcp/b.b:443" },
	{ false, "http.request:r:https://**:443/**", "net.connect:r:tcp/localhost:443" },
	{ true, "net.bind:r:tcp/localhost:1-1023", "net.bind:r:tcp/localhost:80" },
	{ true, "git.use:r:https://a.b:443/x", "git.use:r:https://a.b:443/x;op=push;ref=a" },
	{ true, "secret.use:r:/k", "secret.use:r:/k;as=env;to=https://a.b:443/" },
	{ true, "dev.use:r:/dev/kvm", "dev.use:r:/dev/kvm;o=rw" },
	{ false, "dev.use:r:/dev/kvm", "dev.use:r:/dev/kv;o=rw" },
	{ true, "proc.exec:r:/usr/**", "proc.exec:r:/usr/bin/x;args=/x;sha256=" HEX64 },
};

/* --- Section 4; the child comes first --- */

static const struct pair within[] = {
	{ true, "fs.put:r:/a", "fs.write:r:/a" },
	{ false, "fs.write:r:/a", "fs.put:r:/a" },
	{ false, "fs.read:r:/a", "fs.write:r:/a" },
	{ false, "fs.read:r:/a", "fs.read:s:/a" },
	{ true, "fs.read:r:/abc", "fs.read:r:/a*" },
	{ true, "fs.read:r:/ab*cd", "fs.read:r:/a*d" },
	{ false, "fs.read:r:/a*d", "fs.read:r:/ab*cd" },
	{ false, "fs.read:r:/a*", "fs.read:r:/a" },
	{ false, "fs.read:r:/*", "fs.read:r:/a*" },
	{ false, "fs.read:r:/a/**", "fs.read:r:/a" },
	{ true, "fs.read:r:/a", "fs.read:r:/a/**" },
	{ true, "fs.read:r:/a/*/**", "fs.read:r:/a/**" },
	{ false, "fs.read:r:/**", "fs.read:r:/a/**" },
	{ false, "fs.read:r:/a/**", "fs.read:r:/a/*/**" },
	{ true, "net.connect:r:tcp/x.a.b:1", "net.connect:r:tcp/*.a.b:1" },
	{ true, "net.connect:r:tcp/*.a.b:1", "net.connect:r:tcp/**.a.b:1" },
	{ true, "net.connect:r:tcp/**.x.a.b:1", "net.connect:r:tcp/**.a.b:1" },
	{ true, "net.connect:r:tcp/*.x.a.b:1", "net.connect:r:tcp/**.a.b:1" },
	{ false, "net.connect:r:tcp/*.x.a.b:1", "net.connect:r:tcp/*.a.b:1" },
	{ false, "net.connect:r:tcp/**.a.b:1", "net.connect:r:tcp/*.a.b:1" },
	{ false, "net.connect:r:tcp/**.a.b:1", "net.connect:r:tcp/**.x.a.b:1" },
	{ false, "net.connect:r:tcp/*.xxa.b:1", "net.connect:r:tcp/**.a.b:1" },
	{ true, "net.connect:r:tcp/*.a.b:1", "net.connect:r:tcp/**:1" },
	{ true, "net.connect:r:tcp/**:1", "net.connect:r:tcp/**:1" },
	{ true, "net.connect:r:tcp/a.b:1", "net.connect:r:tcp/**:1" },
	{ false, "net.connect:r:tcp/localhost:1", "net.connect:r:tcp/**:1" },
	{ false, "net.connect:r:tcp/10.0.0.1:1", "net.connect:r:tcp/**:1" },
	{ false, "net.connect:r:tcp/**:1", "net.connect:r:tcp/**.a.b:1" },
	{ true, "net.connect:r:tcp/10.1.0.0/16:1", "net.connect:r:tcp/10.0.0.0/8:1" },
	{ false, "net.connect:r:tcp/10.0.0.0/8:1", "net.connect:r:tcp/10.1.0.0/16:1" },
	{ true, "net.connect:r:tcp/a.b:5", "net.connect:r:tcp/a.b:1-9" },
	{ false, "net.connect:r:tcp/a.b:1-10", "net.connect:r:tcp/a.b:1-9" },
	{ true, HTTPS "/x;m=GET;q=any", "net.connect:r:tcp/**:443" },
	{ true, HTTPS "/**;m=*;q=any;tls=pass", "net.connect:r:tcp/**:443" },
	{ false, HTTPS "/x;m=GET;q=any", "net.connect:r:tcp/**:443;n=1" },
	{ true, HTTPS "/x;m=GET;n=1;q=any", "net.connect:r:tcp/**:443;n=1" },
	{ false, HTTPS "/x;m=GET;priv=10.0.0.1;q=any", "net.connect:r:tcp/**:443" },
	{ false, "net.connect:r:tcp/a.b:443", HTTPS "/**;m=*;q=any" },
	{ true, HTTPS "/a;m=GET;q=none", HTTPS "/**;m=*;q=any" },
	{ true, HTTPS "/a/;m=GET;q=none", HTTPS "/a/**;m=GET,PUT;q=any" },
	{ false, HTTPS "/a/;m=GET;q=none", HTTPS "/a/*;m=GET;q=none" },
	{ false, HTTPS "/;m=GET;q=none", HTTPS "/*;m=GET;q=none" },
	{ false, HTTPS "/**;m=*;q=any", HTTPS "/**;m=GET;q=any" },
	{ false, HTTPS "/**;m=GET,POST;q=any", HTTPS "/**;m=GET;q=any" },
	{ false, HTTPS "/**;m=GET;q=any", HTTPS "/**;m=GET;q=none" },
	{ false, HTTPS "/**;m=*;q=any;tls=pass", HTTPS "/**;m=*;q=any" },
	{ true, HTTPS "/**;m=*;q=any", HTTPS "/**;m=*;q=any;tls=pass" },
	{ false, "http.request:r:http://a.b:443/;m=*;q=any", HTTPS "/;m=*;q=any" },
	{ true, "fs.read:r:/a;n=1", "fs.read:r:/a" },
	{ true, "fs.read:r:/a;n=1", "fs.read:r:/a;n=2" },
	{ false, "fs.read:r:/a;n=3", "fs.read:r:/a;n=2" },
	{ false, "fs.read:r:/a", "fs.read:r:/a;n=2" },
	{ false, "net.connect:r:tcp/a.b:1;max-out=2", "net.connect:r:tcp/a.b:1;max-out=1" },
	{ false, "net.connect:r:tcp/a.b:1;max-out=2", "net.connect:r:tcp/a.b:1;max-in=9" },
	{ true, "fs.read:r:/a;rate=1/1", "fs.read:r:/a;rate=2/2" },
	{ false, "fs.read:r:/a;rate=2/2", "fs.read:r:/a;rate=1/1" },
	{ true, "fs.read:r:/a;rate=2/3", "fs.read:r:/a;rate=2/1" },
	{ true, "fs.read:r:/a;rate=1/2", "fs.read:r:/a;rate=2/3" },
	{ false, "fs.read:r:/a;rate=1/2", "fs.read:r:/a;rate=2/5" },
	{ false, "fs.read:r:/a", "fs.read:r:/a;rate=2/5" },
	{ false, "fs.read:r:/a;rate=9007199254740991/1",
	  "fs.read:r:/a;rate=9007199254740991/9007199254740991" },
	{ true, "fs.read:r:/a;approve=x,y", "fs.read:r:/a;approve=y" },
	{ false, "fs.read:r:/a;approve=x", "fs.read:r:/a;approve=x,y" },
	{ false, "fs.read:r:/a", "fs.read:r:/a;approve=x" },
	{ true, "net.connect:r:tcp/a.b:1", "net.connect:r:tcp/a.b:1;priv=10.0.0.1" },
	{ true, "net.connect:r:tcp/a.b:1;priv=10.0.0.1,10.0.0.9",
	  "net.connect:r:tcp/a.b:1;priv=10.0.0.0/8" },
	{ false, "net.connect:r:tcp/a.b:1;priv=10.0.0.1,11.0.0.9",
	  "net.connect:r:tcp/a.b:1;priv=10.0.0.0/8" },
	{ false, "net.connect:r:tcp/a.b:1;priv=10.0.0.1", "net.connect:r:tcp/a.b:1" },
	{ true, "proc.exec:r:/a;args=/x/y", "proc.exec:r:/a;args=/x/**" },
	{ false, "proc.exec:r:/a;args=/y", "proc.exec:r:/a;args=/x/**" },
	{ false, "proc.exec:r:/a", "proc.exec:r:/a;args=/**" },
	{ true, "proc.exec:r:/a;args=/y", "proc.exec:r:/a" },
	{ true, "proc.exec:r:/a;sha256=" HEX64, "proc.exec:r:/a;sha256=" HEX64 "," HEX64B },
	{ false, "proc.exec:r:/a;sha256=" HEX64B, "proc.exec:r:/a;sha256=" HEX64 },
	{ false, "proc.exec:r:/a", "proc.exec:r:/a;sha256=" HEX64 },
	{ true, "proc.exec:r:/a;sha256=" HEX64, "proc.exec:r:/a" },
	{ true, "dev.use:r:/dev/a;o=r", "dev.use:r:/dev/*;o=rw" },
	{ false, "dev.use:r:/dev/a;o=rw", "dev.use:r:/dev/*;o=r" },
	{ false, "unix.connect:r:/a;danger=1", "unix.connect:r:/a" },
	{ true, "unix.connect:r:/a", "unix.connect:r:/a;danger=1" },
	{ true, "git.use:r:https://a.b:443/x;op=fetch",
	  "git.use:r:https://a.b:443/x;op=fetch,push;ref=a" },
	{ true, "git.use:r:https://a.b:443/x;op=push;ref=a/b",
	  "git.use:r:https://a.b:443/x;op=fetch,push;ref=a/**" },
	{ false, "git.use:r:https://a.b:443/x;op=push;ref=b",
	  "git.use:r:https://a.b:443/x;op=fetch,push;ref=a/**" },
	{ false, "git.use:r:https://a.b:443/x;op=fetch",
	  "git.use:r:https://a.b:443/x;op=push;ref=a" },
	{ false, "git.use:r:https://a.b:443/x;op=fetch", "git.use:r:ssh://a.b:443/x;op=fetch" },
	{ true, "secret.use:r:/k;as=env;to=https://a.b:443/x",
	  "secret.use:r:/k;as=env;to=https://**:443/**" },
	{ false, "secret.use:r:/k;as=env;to=https://a.b:443/x",
	  "secret.use:r:/k;as=basic;to=https://**:443/**" },
	{ false, "secret.use:r:/k;as=env;to=http://a.b:443/x",
	  "secret.use:r:/k;as=env;to=https://**:443/**" },
};

static void test_pairs(void)
{
	for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
		const struct cap c = parse(CAP_GRANT, matches[i].a);
		const struct cap x = parse(CAP_REQUEST, matches[i].b);

		ok(cap_matches(&c, &x) == matches[i].want, "%s %s %s", matches[i].a,
		   matches[i].want ? "matches" : "does not match", matches[i].b);
	}
	for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
		const struct cap d = parse(CAP_DENIAL, denied[i].a);
		const struct cap x = parse(CAP_REQUEST, denied[i].b);

		ok(cap_denies(&d, &x) == denied[i].want, "not %s %s %s", denied[i].a,
		   denied[i].want ? "denies" : "says nothing about", denied[i].b);
	}
	for (size_t i = 0; i < ARRAY_LEN(within); i++) {
		const struct cap c = parse(CAP_GRANT, within[i].a);
		const struct cap p = parse(CAP_GRANT, within[i].b);

		ok(cap_within(&c, &p) == within[i].want, "%s %s within %s", within[i].a,
		   within[i].want ? "is" : "is not", within[i].b);
	}
}

/* --- Section 5 --- */

static const struct {
	const char *a, *b, *meet; /* NULL: none */
} meets[] = {
	{ "fs.read:r:/a", "fs.read:r:/a", "fs.read:r:/a" },
	{ "fs.read:r:/a", "fs.read:r:/b", NULL },
	{ "fs.read:r:/a", "fs.write:r:/a", NULL },
	{ "fs.read:r:/a", "fs.read:s:/a", NULL },
	{ "fs.put:r:/a/**", "fs.write:r:/a/b", "fs.put:r:/a/b" },
	{ "fs.read:r:/a/*", "fs.read:r:/*/b", "fs.read:r:/a/b" },
	{ "fs.read:r:/ab*", "fs.read:r:/*bc", "fs.read:r:/ab*bc" },
	{ "fs.read:r:/ab*d", "fs.read:r:/a*cd", "fs.read:r:/ab*cd" },
	{ "fs.read:r:/ab*", "fs.read:r:/ac*", NULL },
	{ "fs.read:r:/*a", "fs.read:r:/*b", NULL },
	{ "fs.read:r:/a*/**", "fs.read:r:/*b/c", "fs.read:r:/a*b/c" },
	{ "fs.read:r:/a*/**", "fs.read:r:/*b/*/**", "fs.read:r:/a*b/*/**" },
	{ "fs.read:r:/*/**", "fs.read:r:/", NULL },
	{ "fs.read:r:/a*", "fs.read:r:/*b/c", NULL },
	{ "fs.read:r:/a;n=5", "fs.read:r:/a;rate=2/3", "fs.read:r:/a;n=5;rate=2/3" },
	{ "fs.read:r:/a;n=5;rate=1/1", "fs.read:r:/a;n=3;rate=2/3", "fs.read:r:/a;n=3;rate=1/3" },
	{ "fs.read:r:/a;approve=x", "fs.read:r:/a;approve=b,y", "fs.read:r:/a;approve=b,x,y" },
	{ "net.connect:r:tcp/**.a.b:1-100", "net.connect:r:tcp/x.a.b:50-200",
	  "net.connect:r:tcp/x.a.b:50-100" },
	{ "net.connect:r:tcp/**.a.b:1-100", "net.connect:r:tcp/x.a.b:100-200",
	  "net.connect:r:tcp/x.a.b:100" },
	{ "net.connect:r:tcp/a.b:1-100", "net.connect:r:tcp/a.b:101-200", NULL },
	{ "net.connect:r:tcp/*.a.b:1", "net.connect:r:tcp/*.b.b:1", NULL },
	{ "net.connect:r:tcp/10.0.0.0/8:1-5", "net.connect:r:tcp/10.1.0.0/16:2-9",
	  "net.connect:r:tcp/10.1.0.0/16:2-5" },
	{ "net.connect:r:tcp/a.b:1;n=1;priv=10.0.0.0/8,192.168.1.0/24",
	  "net.connect:r:tcp/a.b:1;max-in=7;priv=10.10.0.0/16,10.9.0.0/16,192.168.0.0/16",
	  "net.connect:r:tcp/a.b:1;max-in=7;n=1;priv=10.10.0.0/16,10.9.0.0/16,192.168.1.0/24" },
	{ "net.connect:r:tcp/a.b:1;n=1;priv=10.0.0.0/8",
	  "net.connect:r:tcp/a.b:1;max-in=7;priv=192.168.0.0/16",
	  "net.connect:r:tcp/a.b:1;max-in=7;n=1" },
	{ "net.connect:r:tcp/a.b:1;n=1;priv=10.0.0.0/8", "net.connect:r:tcp/a.b:1;max-in=7",
	  "net.connect:r:tcp/a.b:1;max-in=7;n=1" },
	{ HTTPS "/a/**;m=GET,PUT;q=any", HTTPS "/*/b;m=POST,PUT;q=none",
	  HTTPS "/a/b;m=PUT;q=none" },
	{ HTTPS "/a/**;m=*;q=any", HTTPS "/*/b;m=POST,PUT;q=none",
	  HTTPS "/a/b;m=POST,PUT;q=none" },
	{ HTTPS "/a/**;m=GET;q=any", HTTPS "/a/b;m=PUT;q=any", NULL },
	{ HTTPS "/a/**;m=GET;q=none", "net.connect:r:tcp/**:1-500;approve=x;n=4",
	  HTTPS "/a/**;approve=x;m=GET;n=4;q=none" },
	{ HTTPS "/**;m=*;q=any;tls=pass", "net.connect:r:tcp/**:443;n=4",
	  HTTPS "/**;m=*;n=4;q=any" },
	{ "http.request:r:https://**.b.c:443/**;m=*;q=any", "net.connect:r:tcp/*.a.b.c:443;n=4",
	  "http.request:r:https://*.a.b.c:443/**;m=*;n=4;q=any" },
	{ HTTPS "/**;m=*;q=any", "net.connect:r:tcp/**:80", NULL },
	{ HTTPS "/**;m=*;max-in=1;q=any;tls=pass", HTTPS "/**;m=*;max-out=1;q=any;tls=pass",
	  HTTPS "/**;m=*;max-in=1;max-out=1;q=any;tls=pass" },
	{ HTTPS "/**;m=*;max-in=1;q=any;tls=pass", HTTPS "/**;m=*;max-out=1;q=any",
	  HTTPS "/**;m=*;max-in=1;max-out=1;q=any" },
	{ "proc.exec:r:/a;args=/x/**", "proc.exec:r:/a;sha256=" HEX64,
	  "proc.exec:r:/a;args=/x/**;sha256=" HEX64 },
	{ "proc.exec:r:/a;args=/x", "proc.exec:r:/a;args=/y", NULL },
	{ "proc.exec:r:/a;sha256=" HEX64, "proc.exec:r:/a;sha256=" HEX64B, NULL },
	{ "unix.connect:r:/a;danger=1;n=1", "unix.connect:r:/a;rate=1/1",
	  "unix.connect:r:/a;n=1;rate=1/1" },
	{ "unix.connect:r:/a;danger=1;n=1", "unix.connect:r:/a;danger=1;rate=1/1",
	  "unix.connect:r:/a;danger=1;n=1;rate=1/1" },
	{ "dev.use:r:/dev/*;o=r", "dev.use:r:/dev/a;o=rw", "dev.use:r:/dev/a;o=r" },
	{ "git.use:r:https://a.b:443/x;op=fetch,push;ref=a/**",
	  "git.use:r:https://a.b:443/x;n=2;op=fetch", "git.use:r:https://a.b:443/x;n=2;op=fetch" },
	{ "git.use:r:https://a.b:443/x;n=3;op=fetch,push;ref=a/**",
	  "git.use:r:https://a.b:443/x;op=fetch,push;ref=*/b",
	  "git.use:r:https://a.b:443/x;n=3;op=fetch,push;ref=a/b" },
	{ "git.use:r:https://a.b:443/x;op=fetch,push;ref=a",
	  "git.use:r:https://a.b:443/x;op=fetch,push;ref=b", NULL },
	{ "git.use:r:https://a.b:443/x;op=fetch", "git.use:r:https://a.b:443/x;op=push;ref=b",
	  NULL },
	{ "secret.use:r:/k;as=env;n=1;to=https://**:443/a/**",
	  "secret.use:r:/k;as=env;to=https://*.a.b:443/*/b",
	  "secret.use:r:/k;as=env;n=1;to=https://*.a.b:443/a/b" },
	{ "secret.use:r:/k;as=env;to=https://a.b:443/",
	  "secret.use:r:/k;as=basic;to=https://a.b:443/", NULL },
};

static void check_meet(const char *a, const char *b, const char *want)
{
	const struct cap x = parse(CAP_GRANT, a), y = parse(CAP_GRANT, b);
	struct writ_err err = { 0 };
	bool any = false;
	struct cap c;

	if (cap_meet(&arena, &x, &y, &c, &any, &err) < 0)
		ok(false, "%s with %s: %s", a, b, err.what);
	else if (any != (want != NULL))
		ok(false, "%s with %s: %s", a, b, any ? c.text.p : "none");
	else
		is_sv(any ? c.text : SV(""), sv_from(want), want ? want : "no meet");
}

static void test_meets(void)
{
	scoped_buf x = BUF_INIT(8192), y = BUF_INIT(8192);

	for (size_t i = 0; i < ARRAY_LEN(meets); i++) {
		check_meet(meets[i].a, meets[i].b, meets[i].meet);
		check_meet(meets[i].b, meets[i].a, meets[i].meet);
	}
	/* Each fits into 4096 bytes; with the params of both it does not. */
	buf_str(&x, "proc.exec:r:/a;args=/");
	buf_fill(&x, 'x', 3000);
	buf_str(&y, "proc.exec:r:/a;approve=a");
	for (int i = 100; i < 500; i++)
		buf_fmt(&y, ",a%d", i);
	ok(y.n < CAP_TEXT_MAX, "two long ones");
	check_meet(x.p, y.p, NULL);
}

struct raw {
	struct sv raw;
	const char *text; /* NULL: refused */
};

static void test_put_path(void)
{
	static const struct raw paths[] = {
		{ SV_INIT("/"), "/" },
		{ SV_INIT("/a b/*"), "/a%20b/%2A" },
		{ SV_INIT("/\xff\x01%"), "/%FF%01%25" },
		{ SV_INIT("/..."), "/..." },
		{ SV_INIT(""), NULL },
		{ SV_INIT("a"), NULL },
		{ SV_INIT("//"), NULL },
		{ SV_INIT("/a/"), NULL },
		{ SV_INIT("/a//b"), NULL },
		{ SV_INIT("/a/./b"), NULL },
		{ SV_INIT("/.."), NULL },
		{ SV_INIT("/a\0b"), NULL },
	};
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(100);

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const int r = cap_put_path(&b, paths[i].raw, &err);

		ok((r == 0) == (paths[i].text != NULL) &&
		   sv_eq(buf_view(&b), sv_from(paths[i].text)), "path %zu %s", i,
		   paths[i].text ? paths[i].text : "refused");
		b.n = 0;
	}
}

static void test_put_http_path(void)
{
	static const struct raw urls[] = {
		{ SV_INIT("/"), "/" },
		{ SV_INIT("/a/"), "/a/" },
		{ SV_INIT("/%41%7e%c3%A9"), "/A~%C3%A9" },
		{ SV_INIT("/a:b,c!*"), "/a%3Ab%2Cc%21%2A" },
		{ SV_INIT("/%3b%20"), "/%3B%20" },
		{ SV_INIT("/...a"), "/...a" },
		{ SV_INIT(""), NULL },
		{ SV_INIT("*"), NULL },
		{ SV_INIT("a"), NULL },
		{ SV_INIT("http://a/"), NULL },
		{ SV_INIT("//"), NULL },
		{ SV_INIT("/a//b"), NULL },
		{ SV_INIT("/."), NULL },
		{ SV_INIT("/a/.."), NULL },
		{ SV_INIT("/../a"), NULL },
		{ SV_INIT("/%2e%2e/a"), NULL },
		{ SV_INIT("/a%2Eb"), NULL },
		{ SV_INIT("/a%2fb"), NULL },
		{ SV_INIT("/a%5Cb"), NULL },
		{ SV_INIT("/a%25b"), NULL },
		{ SV_INIT("/a%00b"), NULL },
		{ SV_INIT("/a\\b"), NULL },
		{ SV_INIT("/a;b"), NULL },
		{ SV_INIT("/a?b"), NULL },
		{ SV_INIT("/a#b"), NULL },
		{ SV_INIT("/a b"), NULL },
		{ SV_INIT("/a\tb"), NULL },
		{ SV_INIT("/a\x7f"), NULL },
		{ SV_INIT("/\xc3\xa9"), NULL },
		{ SV_INIT("/a\0b"), NULL },
		{ SV_INIT("/%"), NULL },
		{ SV_INIT("/%4"), NULL },
		{ SV_INIT("/%4g"), NULL },
	};
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(100);

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		const int r = cap_put_http_path(&b, urls[i].raw, &err);

		ok((r == 0) == (urls[i].text != NULL) &&
		   sv_eq(buf_view(&b), sv_from(urls[i].text)), "request path %zu %s", i,
		   urls[i].text ? urls[i].text : "refused");
		b.n = 0;
	}
}

static void test_addr(void)
{
	static const char *const same[] = {
		"1.2.3.4", "10.0.0.0/8", "0.0.0.0/0", "[::]/0", "[::1]", "[1::]", "[::2]/127",
		"[2001:db8:0:1:1:1:1:1]", "[2001:0:0:1::1]", "[1:0:0:2::3]", "[1::2:0:0:3:4]",
	};
	struct cap_net_addr a, b;

	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		scoped_buf text = BUF_INIT(64);

		if (!ok(cap_addr_parse(sv_from(same[i]), &a), "address %s", same[i]))
			continue;
		cap_addr_print(&a, &text);
		is_sv(buf_view(&text), sv_from(same[i]), "printed again");
	}
	ok(cap_addr_parse(SV("10.128.0.0/9"), &a) && cap_addr_parse(SV("10.0.0.0/8"), &b) &&
	   cap_addr_within(&a, &b) && !cap_addr_within(&b, &a), "half a network");
	ok(cap_addr_parse(SV("[a00::]/8"), &a) && !cap_addr_within(&a, &b), "families differ");
}

int main(void)
{
	test_pairs();
	test_meets();
	test_put_path();
	test_put_http_path();
	test_addr();
	arena_clear(&arena);
	return tap_done();
}

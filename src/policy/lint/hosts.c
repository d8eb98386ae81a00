#include <string.h>

#include "lint/check_priv.h"

#include "base/banned.h"

/*
 * Reach of an entry in the table of sites where an agent can publish data. SHARED domains have many
 * owners: a single name below such a domain belongs to a known owner, a wildcard covers all owners.
 */
enum reach {
	WHOLE = 0, /* the entry matches the name and everything below the name */
	EXACT,	   /* the entry matches the name only */
	SHARED,	   /* the entry matches the name, and wildcards below the name */
};

static const struct host {
	const char *name;
	enum reach reach;
	const char *what;
} hosts[] = {
	{ "pastebin.com", WHOLE, "paste site" }, { "hastebin.com", WHOLE, "paste site" },
	{ "paste.ee", WHOLE, "paste site" }, { "dpaste.com", WHOLE, "paste site" },
	{ "dpaste.org", WHOLE, "paste site" }, { "rentry.co", WHOLE, "paste site" },
	{ "ix.io", WHOLE, "paste site" }, { "sprunge.us", WHOLE, "paste site" },
	{ "termbin.com", WHOLE, "paste site" }, { "paste.rs", WHOLE, "paste site" },
	{ "0x0.st", WHOLE, "paste site" }, { "controlc.com", WHOLE, "paste site" },
	{ "ghostbin.com", WHOLE, "paste site" }, { "gist.github.com", EXACT, "paste site" },
	{ "gist.githubusercontent.com", EXACT, "paste site" },
	{ "webhook.site", WHOLE, "request collector" },
	{ "requestbin.com", WHOLE, "request collector" },
	{ "requestbin.net", WHOLE, "request collector" },
	{ "requestcatcher.com", WHOLE, "request collector" },
	{ "pipedream.net", WHOLE, "request collector" },
	{ "beeceptor.com", WHOLE, "request collector" },
	{ "hookbin.com", WHOLE, "request collector" },
	{ "oastify.com", WHOLE, "request collector" },
	{ "interact.sh", WHOLE, "request collector" },
	{ "oast.fun", WHOLE, "request collector" },
	{ "canarytokens.com", WHOLE, "request collector" },
	{ "httpbin.org", WHOLE, "request collector" }, { "ngrok.io", WHOLE, "tunnel" },
	{ "ngrok.app", WHOLE, "tunnel" }, { "ngrok.dev", WHOLE, "tunnel" },
	{ "ngrok-free.app", WHOLE, "tunnel" }, { "ngrok-free.dev", WHOLE, "tunnel" },
	{ "trycloudflare.com", WHOLE, "tunnel" }, { "loca.lt", WHOLE, "tunnel" },
	{ "localtunnel.me", WHOLE, "tunnel" }, { "serveo.net", WHOLE, "tunnel" },
	{ "localhost.run", WHOLE, "tunnel" }, { "lhr.life", WHOLE, "tunnel" },
	{ "bore.pub", WHOLE, "tunnel" }, { "devtunnels.ms", WHOLE, "tunnel" },
	{ "transfer.sh", WHOLE, "file drop" }, { "file.io", WHOLE, "file drop" },
	{ "gofile.io", WHOLE, "file drop" }, { "catbox.moe", WHOLE, "file drop" },
	{ "tmpfiles.org", WHOLE, "file drop" }, { "wetransfer.com", WHOLE, "file drop" },
	{ "anonfiles.com", WHOLE, "file drop" }, { "mega.nz", WHOLE, "file drop" },
	{ "dropbox.com", WHOLE, "file drop" }, { "dropboxapi.com", WHOLE, "file drop" },
	{ "drive.google.com", EXACT, "file drop" }, { "discord.com", WHOLE, "chat webhook" },
	{ "discordapp.com", WHOLE, "chat webhook" }, { "hooks.slack.com", EXACT, "chat webhook" },
	{ "api.telegram.org", EXACT, "chat bot" }, { "t.me", EXACT, "chat bot" },
	{ "ntfy.sh", WHOLE, "message relay" }, { "pushover.net", WHOLE, "message relay" },
	{ "hooks.zapier.com", EXACT, "webhook relay" },
	{ "maker.ifttt.com", EXACT, "webhook relay" },
	{ "wikipedia.org", WHOLE, "wiki anyone can edit" },
	{ "wikimedia.org", WHOLE, "wiki anyone can edit" },
	{ "wikidata.org", WHOLE, "wiki anyone can edit" },
	{ "wiktionary.org", WHOLE, "wiki anyone can edit" },
	{ "fandom.com", WHOLE, "wiki anyone can edit" },
	{ "miraheze.org", WHOLE, "wiki anyone can edit" },
	{ "telegra.ph", WHOLE, "page anyone can publish" },
	{ "write.as", WHOLE, "page anyone can publish" },
	{ "notion.site", WHOLE, "page anyone can publish" },
	{ "hackmd.io", WHOLE, "page anyone can publish" },
	{ "docs.google.com", EXACT, "form or page anyone can publish" },
	{ "forms.gle", EXACT, "form anyone can publish" },
	{ "script.google.com", EXACT, "script anyone can publish" },
	{ "sentry.io", WHOLE, "collector open to any project key" },
	{ "app.posthog.com", EXACT, "collector open to any project key" },
	{ "google-analytics.com", WHOLE, "collector open to any project key" },
	{ "s3.amazonaws.com", SHARED, "shared object storage" },
	{ "amazonaws.com", SHARED, "shared object storage" },
	{ "storage.googleapis.com", SHARED, "shared object storage" },
	{ "googleapis.com", SHARED, "shared object storage" },
	{ "blob.core.windows.net", SHARED, "shared object storage" },
	{ "r2.cloudflarestorage.com", SHARED, "shared object storage" },
	{ "r2.dev", SHARED, "shared object storage" },
	{ "digitaloceanspaces.com", SHARED, "shared object storage" },
	{ "backblazeb2.com", SHARED, "shared object storage" },
	{ "supabase.co", SHARED, "shared hosting" },
	{ "firebaseio.com", SHARED, "shared hosting" },
	{ "web.app", SHARED, "shared hosting" }, { "workers.dev", SHARED, "shared hosting" },
	{ "pages.dev", SHARED, "shared hosting" }, { "vercel.app", SHARED, "shared hosting" },
	{ "netlify.app", SHARED, "shared hosting" }, { "herokuapp.com", SHARED, "shared hosting" },
	{ "onrender.com", SHARED, "shared hosting" }, { "fly.dev", SHARED, "shared hosting" },
	{ "railway.app", SHARED, "shared hosting" }, { "replit.app", SHARED, "shared hosting" },
	{ "azurewebsites.net", SHARED, "shared hosting" },
	{ "run.app", SHARED, "shared hosting" },
	{ "github.io", SHARED, "shared hosting" },
	{ "blogspot.com", SHARED, "shared hosting" },
	{ "wordpress.com", SHARED, "shared hosting" },
};

/*
 * Public suffixes below which anybody can register a name, so a wildcard directly below one covers
 * everybody.
 */
static const char *const suffixes[] = {
	"co.uk", "org.uk", "com.au", "co.jp",  "com.br", "co.in",  "com.cn", "co.kr",
	"co.nz", "com.mx", "co.za",  "com.tr", "com.tw", "com.sg", NULL,
};

/* Returns the host of @url, without scheme, user, port and path. */
static struct sv host_of(struct sv url)
{
	size_t i;

	for (i = 0; i + 3 <= url.n; i++)
		if (!memcmp(url.p + i, "://", 3)) {
			url = sv_skip(url, i + 3);
			break;
		}
	for (i = 0; i < url.n && !strchr("/?#", url.p[i]); i++)
		;
	url = sv_sub(url, 0, i);
	i = sv_rfind(url, '@');
	if (i != SIZE_MAX)
		url = sv_skip(url, i + 1);
	if (url.n && url.p[0] == '[')
		return sv_sub(url, 0,
			      sv_find(url, ']') == SIZE_MAX ? url.n : sv_find(url, ']') + 1);
	i = sv_rfind(url, ':');
	if (i != SIZE_MAX && sv_find(url, ':') == i)
		url = sv_sub(url, 0, i);
	while (url.n && url.p[url.n - 1] == '.')
		url.n--;
	return url;
}

/* Is @name the domain @d or a name below @d, ignoring ASCII case? */
static bool below(struct sv name, struct sv d)
{
	if (name.n < d.n)
		return false;
	for (size_t i = 0; i < d.n; i++) {
		char a = name.p[name.n - d.n + i];

		if (a >= 'A' && a <= 'Z')
			a = (char)(a + 32);
		if (a != d.p[i])
			return false;
	}
	return name.n == d.n || name.p[name.n - d.n - 1] == '.';
}

static bool covers(const struct host *h, struct sv base, bool wildcard)
{
	const struct sv name = sv_from(h->name);
	const bool same = base.n == name.n && below(base, name);

	if (wildcard && base.n < name.n && below(name, base))
		return true; /* the wildcard .github.com includes gist.github.com */
	switch (h->reach) {
	case WHOLE:
		return below(base, name);
	case EXACT:
		return same;
	case SHARED:
		return same;
	}
	return false;
}

static bool is_everything(struct sv entry, struct sv base, bool wildcard)
{
	if (sv_is(entry, "0.0.0.0/0") || sv_is(entry, "::/0") || sv_is(entry, "0/0"))
		return true;
	if (!wildcard)
		return false;
	return !base.n || sv_find(base, '.') == SIZE_MAX || lint_in(base, suffixes);
}

static const struct host *find_host(struct sv base, bool wildcard)
{
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (covers(&hosts[i], base, wildcard))
			return &hosts[i];
	return NULL;
}

const char *lint_exfiltration_host(struct sv name, bool wildcard)
{
	const struct host *h = find_host(name, wildcard);

	return h ? h->what : NULL;
}

void lint_host_check(struct check *c, const struct node *at, struct sv entry)
{
	const struct sv host = host_of(sv_trim(entry));
	struct sv base = host;
	const struct host *hit;
	bool wildcard = false;

	while (base.n && (base.p[0] == '*' || base.p[0] == '.')) {
		wildcard = true; /* "*.x", "**.x" and ".x" all mean the names below x */
		base = sv_skip(base, 1);
	}
	if (!host.n)
		return;
	if (is_everything(sv_trim(entry), base, wildcard)) {
		lint_found(c, R_WILDCARD_EGRESS, at, sv_trim(entry));
		return;
	}
	hit = find_host(base, wildcard);
	if (hit)
		lint_report(c, R_EXFILTRATION_HOST, at, SV_FMT ", %s", SV_ARG(host), hit->what);
}

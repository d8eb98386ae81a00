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
	const char *names; /* domains, with a blank between two */
	enum reach reach;
	const char *what;
} hosts[] = {
	{ "pastebin.com hastebin.com paste.ee dpaste.com dpaste.org rentry.co ix.io sprunge.us "
	  "termbin.com paste.rs 0x0.st controlc.com ghostbin.com",
	  WHOLE, "paste site" },
	{ "gist.github.com gist.githubusercontent.com", EXACT, "paste site" },
	{ "webhook.site requestbin.com requestbin.net requestcatcher.com pipedream.net "
	  "beeceptor.com hookbin.com oastify.com interact.sh oast.fun canarytokens.com "
	  "httpbin.org",
	  WHOLE, "request collector" },
	{ "ngrok.io ngrok.app ngrok.dev ngrok-free.app ngrok-free.dev trycloudflare.com loca.lt "
	  "localtunnel.me serveo.net localhost.run lhr.life bore.pub devtunnels.ms",
	  WHOLE, "tunnel" },
	{ "transfer.sh file.io gofile.io catbox.moe tmpfiles.org wetransfer.com anonfiles.com "
	  "mega.nz dropbox.com dropboxapi.com",
	  WHOLE, "file drop" },
	{ "drive.google.com", EXACT, "file drop" },
	{ "discord.com discordapp.com", WHOLE, "chat webhook" },
	{ "hooks.slack.com", EXACT, "chat webhook" },
	{ "api.telegram.org t.me", EXACT, "chat bot" },
	{ "ntfy.sh pushover.net", WHOLE, "message relay" },
	{ "hooks.zapier.com maker.ifttt.com", EXACT, "webhook relay" },
	{ "wikipedia.org wikimedia.org wikidata.org wiktionary.org fandom.com miraheze.org",
	  WHOLE, "wiki anyone can edit" },
	{ "telegra.ph write.as notion.site hackmd.io", WHOLE, "page anyone can publish" },
	{ "docs.google.com", EXACT, "form or page anyone can publish" },
	{ "forms.gle", EXACT, "form anyone can publish" },
	{ "script.google.com", EXACT, "script anyone can publish" },
	{ "sentry.io", WHOLE, "collector open to any project key" },
	{ "app.posthog.com", EXACT, "collector open to any project key" },
	{ "google-analytics.com", WHOLE, "collector open to any project key" },
	{ "s3.amazonaws.com amazonaws.com storage.googleapis.com googleapis.com "
	  "blob.core.windows.net r2.cloudflarestorage.com r2.dev digitaloceanspaces.com "
	  "backblazeb2.com",
	  SHARED, "shared object storage" },
	{ "supabase.co firebaseio.com web.app workers.dev pages.dev vercel.app netlify.app "
	  "herokuapp.com onrender.com fly.dev railway.app replit.app azurewebsites.net run.app "
	  "github.io blogspot.com wordpress.com",
	  SHARED, "shared hosting" },
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
	for (size_t i = 0; i < d.n; i++)
		if (sv_lower(name.p[name.n - d.n + i]) != d.p[i])
			return false;
	return name.n == d.n || name.p[name.n - d.n - 1] == '.';
}

static bool covers(enum reach reach, struct sv name, struct sv base, bool wildcard)
{
	if (wildcard && base.n < name.n && below(name, base))
		return true; /* the wildcard .github.com includes gist.github.com */
	return below(base, name) && (reach == WHOLE || base.n == name.n);
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
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct sv names = sv_from(hosts[i].names);

		while (names.n)
			if (covers(hosts[i].reach, sv_cut(&names, ' '), base, wildcard))
				return &hosts[i];
	}
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

/* Loading, diagnostics, explain, and structs of other versions of the header. */
#include "scene.h"

struct seen {
	int n;
	uint32_t line;
	int level;
	char source[64], text[256], hint[256];
};

static void see(void *ctx, const struct writ_diagnostic *d)
{
	struct seen *s = ctx;

	if (s->n++)
		return;
	s->line = d->line;
	s->level = d->level;
	snprintf(s->source, sizeof(s->source), "%s", d->source);
	snprintf(s->text, sizeof(s->text), "%s", d->text);
	snprintf(s->hint, sizeof(s->hint), "%s", d->hint);
}

static void test_errors(struct scene *s)
{
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	struct writ_policy *p = NULL;
	struct writ_error err = { 0 };
	struct seen seen = { 0 };
	char *text = NULL;

	opt.text = "version 1\nallow raed /usr\n";
	opt.text_name = "mine.writ";
	opt.diagnostic = see;
	opt.diagnostic_ctx = &seen;
	ok(writ_policy_load(s->w, &opt, &p, &text, &err) == WRIT_ERROR_SYNTAX,
	   "a wrong verb is refused");
	ok(p == NULL, "and there is no policy");
	ok(err.code == WRIT_ERROR_SYNTAX && strstr(err.text, "1 error"), "the error counts: %s",
	   err.text);
	ok(seen.n == 1 && seen.line == 2 && seen.level == WRIT_DIAGNOSTIC_ERROR,
	   "one call, line 2");
	is_str(seen.source, "mine.writ", "by the name it was given");
	ok(strstr(seen.text, "raed") || strstr(seen.hint, "read"), "it says which word");
	ok(text && strstr(text, "mine.writ:2") && strstr(text, "raed"),
	   "and the text shows the place");
	writ_text_free(text);

	opt = (struct writ_policy_options)WRIT_INIT(struct writ_policy_options);
	opt.text = "version 1\nallow read /usr\n";
	text = (char *)1;
	ok(writ_policy_load(s->w, &opt, &p, &text, &err) == 0 && text == NULL,
	   "a right one has no diagnostics");
	writ_policy_free(p);

	p = NULL;
	opt.text = "version 1\nallow read /no/such/path\n";
	ok(writ_policy_load(s->w, &opt, &p, NULL, NULL) == WRIT_ERROR_SYNTAX,
	   "a missing path is an error");
	opt.flags = WRIT_POLICY_MISSING_OK;
	ok(writ_policy_load(s->w, &opt, &p, NULL, NULL) == 0, "unless one only wants to look");
	writ_policy_free(p);
}

static void test_files(struct scene *s)
{
	const struct writ_rule rules[] = { { WRIT_RULE_ALLOW, "read:/usr" },
					   { WRIT_RULE_LIMIT, "memory=1G" } };
	const struct writ_rule wrong[] = { { 99, "read:/usr" } };
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	char a[SCENE_PATH + 32], b[SCENE_PATH + 32];
	const char *const files[] = { a, NULL };
	struct writ_policy *p = NULL;
	struct writ_error err = { 0 };
	char *text = NULL;

	snprintf(a, sizeof(a), "%s/a.writ", s->top);
	snprintf(b, sizeof(b), "%s/b.writ", s->top);
	scene_write(a, "version 1\nuse ./b.writ\n");
	scene_write(b, "version 1\nallow read /usr/share\n");
	opt.files = files;
	opt.rules = rules;
	opt.rules_n = 2;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0,
	   "a file that uses another, and rules: %s", err.text);
	ok(writ_explain(p, 0, &text, &err) == 0 && strstr(text, "/usr/share") &&
		   strstr(text, "memory"),
	   "all of it is in the policy");
	writ_text_free(text);
	writ_policy_free(p);
	opt.rules = wrong;
	opt.rules_n = 1;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) < 0, "an unknown kind of rule is refused");
	unlink(b);
	opt.rules_n = 0;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) < 0, "a file that is gone is an error");
}

static void test_workspace(struct scene *s)
{
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	struct writ_policy *p = NULL;
	struct writ_error err = { 0 };

	opt.text = "version 1\nallow write .\n";
	opt.workspace = s->home;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == WRIT_ERROR_DENIED,
	   "a home is no workspace: %s", err.text);
	opt.workspace = "/usr/share";
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == WRIT_ERROR_DENIED, "nor is the system");
	opt.workspace = s->work;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0, "an ordinary directory is");
	writ_policy_free(p);
}

static void test_discover(struct scene *s)
{
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	struct writ_policy *p = NULL;
	struct writ_error err = { 0 };
	char path[SCENE_PATH + 64], *text = NULL;

	opt.flags = WRIT_POLICY_DISCOVER;
	opt.cwd = s->work;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0 &&
		   writ_explain(p, 0, &text, &err) == 0 && strstr(text, "write"),
	   "where nobody wrote a policy, the workspace is writable");
	writ_text_free(text);
	writ_policy_free(p);

	snprintf(path, sizeof(path), "%s/.config", s->home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/.config/writ", s->home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/.config/writ/policy.writ", s->home);
	scene_write(path, "version 1\nallow read /usr/share/doc\n");
	text = NULL;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0 &&
		   writ_explain(p, 0, &text, &err) == 0 && strstr(text, "/usr/share/doc"),
	   "the user's own policy is found");
	ok(text && !strstr(text, "write"), "and then nothing is writable by default");
	writ_text_free(text);
	writ_policy_free(p);

	snprintf(path, sizeof(path), "%s/agent.writ", s->work);
	scene_write(path, "version 1\nallow write .\n");
	text = NULL;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0 &&
		   writ_guarantees(p, &text, &err) == 0 && !strstr(text, "write ."),
	   "an agent.writ that nobody trusted does not widen");
	writ_text_free(text);
	writ_policy_free(p);
	unlink(path);
}

static void test_explain(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "allow write .");
	char *text = NULL, *json = NULL, *more = NULL;
	struct writ_error err = { 0 };

	ok(writ_explain(p, 0, &text, &err) == 0 && strstr(text, "write"),
	   "explain speaks of the rule");
	ok(writ_explain(p, WRIT_EXPLAIN_ALL | WRIT_EXPLAIN_VERBOSE, &more, &err) == 0 &&
		   strlen(more) > strlen(text),
	   "and of more if asked");
	ok(writ_guarantees(p, &json, &err) == 0 && json[0] == '{' && strstr(json, "\"fs.write\"") &&
		   strstr(json, "\"tier\""),
	   "guarantees are JSON");
	ok(json && !strchr(json, '\n'), "in one line");
	writ_text_free(text);
	writ_text_free(more);
	writ_text_free(json);
	writ_policy_free(p);
}

/* A program made with an older or newer header. */
static void test_sizes(struct scene *s)
{
	struct {
		struct writ_policy_options opt;
		char more[64];
	} newer = { .opt = WRIT_INIT(struct writ_policy_options) };
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	struct writ_policy *p = NULL;
	struct writ_error err = { 0 };

	opt.text = "version 1\n";
	opt.size = offsetof(struct writ_policy_options, rules);
	opt.rules_n = 7;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0,
	   "a shorter struct: the rest counts as zero");
	writ_policy_free(p);
	newer.opt.text = "version 1\n";
	newer.opt.size = sizeof(newer);
	ok(writ_policy_load(s->w, &newer.opt, &p, NULL, &err) == 0,
	   "a longer one that asks for nothing new");
	writ_policy_free(p);
	newer.more[8] = 1;
	ok(writ_policy_load(s->w, &newer.opt, &p, NULL, &err) == WRIT_ERROR_ARGUMENT,
	   "one that asks for what we do not know is refused");
	opt.size = 0;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == WRIT_ERROR_ARGUMENT,
	   "a size of zero is refused");
	ok(writ_policy_load(NULL, NULL, NULL, NULL, NULL) == WRIT_ERROR_ARGUMENT,
	   "NULLs are refused");
	ok(writ_version()[0] >= '0' && writ_version()[0] <= '9', "there is a version: %s",
	   writ_version());
}

int main(void)
{
	struct scene s = { 0 };

	scene_make(&s);
	test_errors(&s);
	test_files(&s);
	test_workspace(&s);
	test_explain(&s);
	test_sizes(&s);
	test_discover(&s);
	scene_clear(&s);
	return tap_done();
}

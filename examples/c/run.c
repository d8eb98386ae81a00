/*
 * run.c - runs a command with one writable directory and shows what was denied
 *
 *   cc run.c $(pkg-config --cflags --libs writ) -o run
 *   ./run DIRECTORY COMMAND [ARGUMENT...]
 */
#include <stdio.h>
#include <string.h>
#include <writ/writ.h>

static void show_output(void *ctx, int stream, const void *bytes, size_t n)
{
	(void)ctx;
	(void)fwrite(bytes, 1, n, stream == 1 ? stdout : stderr);
}

static void show_denials(struct writ *w, const char *session)
{
	struct writ_event event = WRIT_INIT(struct writ_event);
	struct writ_events *events;

	if (writ_events_open(w, session, &events, NULL) < 0)
		return;
	while (writ_events_next(events, 0, &event, NULL) > 0)
		if (event.kind == WRIT_EVENT_DENIED)
			fprintf(stderr, "%s\n", event.json);
	writ_events_close(events);
}

int main(int argc, char **argv)
{
	struct writ_policy_options wanted = WRIT_INIT(struct writ_policy_options);
	struct writ_run_options command = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_policy *policy = NULL;
	struct writ_error err = { 0 };
	struct writ *writ = NULL;
	char *diagnostics = NULL;
	int code = 125;

	if (argc < 3)
		return code;
	wanted.workspace = argv[1];
	wanted.cwd = argv[1];
	wanted.text = "version 1\n"
		      "allow write .\n"
		      "limit session 1m\n";
	command.argv = (const char *const *)argv + 2;
	command.output = show_output;
	if (writ_new(NULL, &writ, &err) == 0 &&
	    writ_policy_load(writ, &wanted, &policy, &diagnostics, &err) == 0 &&
	    writ_run(policy, &command, &how, &err) == 0) {
		code = how.code;
		show_denials(writ, how.session);
	}
	if (diagnostics)
		(void)fputs(diagnostics, stderr);
	if (err.code)
		fprintf(stderr, "run: %s\n", err.text);
	writ_text_free(diagnostics);
	writ_policy_free(policy);
	writ_free(writ);
	return code;
}

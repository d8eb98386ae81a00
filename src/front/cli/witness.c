#include "base/fd.h"
#include "cli/log.h"
#include "witness/http.h"
#include "witness/serve.h"

#include "base/banned.h"

/*
 * The verb witness: runs a witness for logs of other users, and configures the witnesses of the
 * user's own log.
 */

static void say_answer(void *ctx, unsigned status, size_t bytes)
{
	(void)ctx;
	cli_note("%u, %zu bytes asked", status, bytes);
}

/*
 * Collects the keys of the logs to witness: verifier keys given as operands, and the log keys of
 * the --policy file.
 */
static int logs_of(struct args *a, struct pins *pins, struct note_key **ret, size_t *ret_n,
		   struct writ_err *err)
{
	struct note_key *logs =
		arena_array(a->arena, struct note_key, a->operands.n + TLOG_LOGS_MAX);
	size_t n = 0;
	int r = 0;

	if (!logs)
		return writ_nomem(err);
	for (size_t i = 1; r == 0 && i < a->operands.n; i++) {
		r = note_key_parse(sv_from(a->operands.v[i]), &logs[n], err);
		if (r == 0 && logs[n++].type != NOTE_KEY_ED25519)
			r = writ_fail(err, WRIT_E_SYNTAX, 0, "that is not the key of a log");
	}
	if (r == 0 && a->given[OPT_POLICY])
		r = pins_read(a->value[OPT_POLICY], pins, err);
	for (size_t i = 0; r == 0 && i < pins->policy.logs_n; i++)
		logs[n++] = pins->policy.log[i].key;
	if (r == 0 && n == 0)
		r = writ_fail(err, WRIT_E_SYNTAX, 0,
			      "a witness of which logs? as in: writ witness serve VKEY");
	*ret = logs;
	*ret_n = n;
	return r;
}

static int load_key(const struct args *a, const struct log_place *p, struct witness_store *k,
		    struct buf *name, struct writ_err *err)
{
	scoped_key_pair pair;
	char dir[LOG_PATH];
	int r = audit_log_path(p->state, "keys", dir, err);

	if (r == 0)
		r = a->given[OPT_KEY] ? keys_load_file(a->value[OPT_KEY], &pair, err)
				      : keys_load(dir, KEY_WITNESS, true, &pair, err);
	if (r < 0)
		return r;
	buf_fmt(name, "writ/witness/" SV_FMT, SV_ARG(p->realm));
	k->sec = pair.sec;
	return note_key_init(&k->key, NOTE_KEY_COSIGNATURE, buf_view(name), &pair.pub, err);
}

static int serve(struct args *a, const struct log_place *p)
{
	const char *dir = a->given[OPT_DIR]
				  ? a->value[OPT_DIR]
				  : arena_fmt(a->arena, SV_FMT "/witness", SV_ARG(p->state));
	const struct sv at =
		sv_from(a->given[OPT_LISTEN] ? a->value[OPT_LISTEN] : "127.0.0.1:8327");
	struct witness_store k = { .dir = dir, .lock = -1 };
	scoped_buf name = BUF_INIT(128);
	scoped_pins pins = PINS_INIT;
	struct buf b = BUF_INIT(1024);
	struct writ_err err = { 0 };
	struct note_key *logs = NULL;
	scoped_fd fd = -1;
	uint16_t port;
	int r = dir ? logs_of(a, &pins, &logs, &k.logs_n, &err) : writ_nomem(&err);

	if (r == 0) {
		k.logs = logs;
		r = load_key(a, p, &k, &name, &err);
	}
	if (r == 0)
		r = witness_store_open(&k, &err);
	if (r == 0)
		r = witness_serve_listen(at, &fd, &port, &err);
	if (r == 0) {
		buf_fmt(&b, "http://" SV_FMT ":%u ", SV_ARG(sv_sub(at, 0, sv_rfind(at, ':'))),
			port);
		note_key_print(&k.key, &b);
		buf_ch(&b, '\n');
		if (cli_out(&b, EXIT_DONE) != EXIT_DONE)
			return EXIT_FAILED;
		r = witness_serve_loop(&k, fd, a->given[OPT_VERBOSE] ? say_answer : NULL, NULL,
				       &err);
	}
	witness_store_close(&k);
	crypto_wipe(&k.sec, sizeof(k.sec));
	return r < 0 ? cli_fail(&err, NULL) : EXIT_DONE;
}

static int add(struct args *a, const struct log_place *p)
{
	struct writ_err err = { 0 };
	struct http_url url;
	struct note_key key;
	char path[LOG_PATH];
	bool required = false;

	if (a->operands.n != 3)
		return cli_end(EXIT_FAILED,
			       "add which? as in: writ witness add http://10.0.0.7:8327 VKEY");
	if (witness_http_url_parse(sv_from(a->operands.v[1]), &url, &err) < 0 ||
	    note_key_parse(sv_from(a->operands.v[2]), &key, &err) < 0 ||
	    audit_log_path(p->config, "log.policy", path, &err) < 0 ||
	    pins_add_witness(path, &key, sv_from(a->operands.v[1]), &required, &err) < 0)
		return cli_fail(&err, NULL);
	cli_note("%s: it is asked when a session ends%s", path,
		 required ? ", and without its word nothing verifies"
			  : "; the quorum that you wrote stays");
	return cli_end(EXIT_DONE, "it must know your log: writ key show log. The first time now: "
		       "writ audit witness");
}

int cmd_witness(struct args *a)
{
	const struct sv what = sv_from(a->operands.n ? a->operands.v[0] : "");
	struct writ_err err = { 0 };
	struct log_place p;

	if (cli_log_place_find(a, true, &p, &err) < 0)
		return cli_fail(&err, NULL);
	if (sv_is(what, "serve"))
		return serve(a, &p);
	if (sv_is(what, "add"))
		return add(a, &p);
	return cli_end(EXIT_FAILED, "witness serve VKEY..., or add URL VKEY");
}

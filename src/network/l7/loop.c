#include <stdlib.h>
#include <time.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

enum { ARENA_MAX = 64 << 20, SCRATCH_MAX = 256 << 10 };

static void step(struct link *k)
{
	switch (k->what) {
	case LINK_CLIENT:
		client_step((struct client *)k);
		break;
	case LINK_SERVER:
		server_step((struct server *)k);
		break;
	}
	l7_link_watch(k);
}

void l7_run_woken(struct l7 *l)
{
	struct link *k;

	while ((k = l->woken)) {
		l->woken = k->next_woken;
		if (!l->woken)
			l->woken_end = &l->woken;
		k->woken = false;
		if (!k->dead)
			step(k);
	}
}

void l7_free_dead(struct l7 *l)
{
	struct link *k;

	while ((k = l->dead)) {
		l->dead = k->next_dead;
		if (k->what == LINK_CLIENT)
			client_free((struct client *)k);
		else
			server_free((struct server *)k);
	}
}

/* Handles a link that is past its deadline. A client that waits for a person has no deadline. */
static void overdue(struct link *k)
{
	struct server *s = (struct server *)k;
	struct client *c = (struct client *)k;

	k->deadline_ms = 0;
	if (k->what == LINK_SERVER && (s->dialling || k->shaking)) {
		server_fail(s, CAUSE_CONNECT_TIME, NULL);
		return;
	}
	if (k->peer_gone)
		client_close(c, CAUSE_SERVER_SLOW, NULL);
	else if (k->what == LINK_CLIENT && !k->closing && (k->shaking || k->in.n || c->in_block))
		client_close(c, CAUSE_ASK_TIME, NULL);
	l7_link_kill(k);
}

void l7_check_deadlines(struct l7 *l)
{
	const uint64_t now = l7_now_ms(l);

	for (struct link *k = l->links; k; k = k->next)
		if (k->deadline_ms && k->deadline_ms <= now && !k->dead)
			overdue(k);
}

static int prepare(struct l7 *l, struct sv settings, struct writ_err *err)
{
	struct cap_set *set = &l->settings.set;

	if (l7_settings_decode(&l->arena, settings, &l->settings, err) < 0 ||
	    vault_fill(l, &l->settings, err) < 0)
		return err->code;
	if (!cap_set_index(&l->arena, set))
		return writ_nomem(err);
	if (reach_init(&l->arena, set, l->settings.realm, &l->reach, err) < 0)
		return err->code;
	quota_init(&l->quota, &l->arena, set);
	return 0;
}

int l7_init(struct l7 *l, struct sv settings, struct sv roots, struct writ_err *err)
{
	*l = (struct l7){ .supervisor = -1,
			  .egress = -1,
			  .epoll = -1,
			  .arena = ARENA_INIT(ARENA_MAX),
			  .roots = BUF_INIT(64 << 20),
			  .scratch = BUF_INIT(SCRATCH_MAX) };
	l->woken_end = &l->woken;
	if (prepare(l, settings, err) < 0 ||
	    ca_new(&l->ca, time(NULL), l->settings.set.limits[LIMIT_SESSION], err) < 0 ||
	    tls_start(l, err) < 0 || client_h2_callbacks(&l->client_calls, err) < 0 ||
	    server_h2_callbacks(&l->server_calls, err) < 0)
		return err->code;
	l->nvs = calloc(1, sizeof(*l->nvs));
	buf_sv(&l->roots, roots);
	return l->nvs ? buf_check(&l->roots, err) : writ_nomem(err);
}

void l7_clear(struct l7 *l)
{
	/*
	 * Repeat: when a link is freed, calls that wait for a server may request another
	 * connection, which is a new link.
	 */
	while (l->links) {
		for (struct link *k = l->links; k; k = k->next)
			l7_link_kill(k);
		l7_free_dead(l);
	}
	origin_clear(l);
	tls_clear(l);
	ca_clear(&l->ca);
	vault_clear(&l->vault);
	nghttp2_session_callbacks_del(l->client_calls);
	nghttp2_session_callbacks_del(l->server_calls);
	if (l->nvs)
		buf_clear(&l->nvs->names);
	free(l->nvs);
	if (l->scratch.p)
		explicit_bzero(l->scratch.p, l->scratch.room);
	buf_clear(&l->scratch);
	buf_clear(&l->roots);
	arena_clear(&l->arena);
}

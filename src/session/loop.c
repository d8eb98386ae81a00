#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum {
	POLL_SIGNALS = 0,
	POLL_JAIL,
	POLL_KEEPER,
	POLL_MEDIATOR,
	POLL_LOOK,
	POLL_EGRESS,
	POLL_READER,
	POLL_GIT,
	POLL_ASK,
	POLL_CONTROL,
	POLL_SIGNER,
	POLL_JOB,
	POLL_EARLY, /* until there is egress */
	POLL_LISTENER = POLL_EARLY + EARLY_MAX,
	POLL_MOUNTS,
	POLL_RELAY,
	POLL_COUNT = POLL_RELAY + RELAY_POLLS + CLIENTS_MAX + 2 * SCREENS_MAX + 2 * SUBS_MAX + 1
};

static void on_relay(struct session *s, const struct pollfd *p, size_t n)
{
	enum relay_event e = RELAY_NOTHING;
	struct writ_err err = { 0 };
	struct entry entry = { 0 };

	if (relay_step(s->relay, p, n, &e, &err) < 0) {
		say(s, "%s", err.what);
		session_end(s, "input or output failed", SESSION_FAILED);
		return;
	}
	if (e == RELAY_OUTPUT_FULL) {
		record_begin(s, &entry, "limit");
		record_str(&entry, "limit", SV("output"));
		record_end(s, &entry);
	}
}

/* Only what is there, one behind the other: their number may be bounded tightly. */
struct polled {
	struct pollfd p[POLL_COUNT];
	size_t n, relay_n;
	size_t client[CLIENTS_MAX], screen[SCREENS_MAX][2]; /* where; 0: not at all */
	size_t spawn;					    /* from there on */
};

static size_t add(struct polled *w, struct pollfd p)
{
	if (p.fd < 0)
		return 0;
	w->p[w->n] = p;
	return w->n++;
}

static void fill(struct session *s, struct polled *w, bool rest, bool quiet)
{
	const int fixed[] = { s->signals,
			      s->jail.session,
			      s->jail.keeper,
			      quiet ? -1 : s->mediator,
			      s->look,
			      rest ? -1 : s->egress,
			      rest ? -1 : s->reader,
			      s->git,
			      ask_terminal(s),
			      s->control,
			      s->signer,
			      s->opt->job > 0 && s->state <= SESSION_RUNNING ? s->opt->job : -1,
			      s->early[0],
			      s->early[1],
			      s->early[2],
			      s->state == SESSION_RUNNING ? s->listener : -1 };
	struct pollfd agents[1 + 2 * SUBS_MAX];
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		w->p[i] = (struct pollfd){ .fd = fixed[i], .events = POLLIN };
	w->p[POLL_MOUNTS] = (struct pollfd){ .fd = s->mounts, .events = POLLPRI };
	w->relay_n = s->relay && !s->stopped ? relay_poll(s->relay, w->p + POLL_RELAY) : 0;
	w->n = POLL_RELAY + w->relay_n;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		w->client[i] = add(w, (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN });
	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct pollfd two[2];

		screen_poll(&s->screens[i], two);
		for (size_t j = 0; j < 2; j++)
			w->screen[i][j] = add(w, two[j]);
	}
	w->spawn = w->n;
	n = spawn_poll(s, agents);
	for (size_t i = 0; i < n; i++)
		(void)add(w, agents[i]);
}

static short happened(const struct polled *w, size_t at)
{
	return at ? w->p[at].revents : 0;
}

/* SECURITY: without the process that the shell sees nobody could reach us through it. */
static void on_job(struct session *s)
{
	const int heard = job_heard(s);

	if (heard > 0)
		pulse_go_on(s);
	else if (heard < 0)
		session_end(s, "the job is gone", SESSION_SIGNALLED + SIGHUP);
}

/* Once it was still for a while, it holds no more than somebody who waits needs. */
static int wait_for(struct session *s, struct polled *w, int ms)
{
	enum { STILL_MS = 1000 };
	const bool tired = s->stirred && (ms < 0 || ms >= STILL_MS);
	const int r = poll(w->p, (nfds_t)w->n, tired ? STILL_MS : ms);

	if (r > 0)
		s->stirred = true;
	if (r == 0 && tired) {
		session_rest();
		s->stirred = false;
	}
	return r;
}

void session_step(struct session *s)
{
	const int due = look_timeout(s, pulse_timeout(s)), rest = net_rest(s, due);
	const int most = rest > 0 ? rest : due, quiet = watch_quiet(s, most);
	struct polled w;

	fill(s, &w, rest > 0, quiet > 0);
	if (wait_for(s, &w, quiet > 0 ? quiet : most) < 0) {
		/* More places than this process may have open files. */
		if (errno != EINTR)
			session_end(s, "too few descriptors", SESSION_FAILED);
		return;
	}
	if (w.relay_n)
		on_relay(s, w.p + POLL_RELAY, w.relay_n);
	for (size_t i = 0; i < SCREENS_MAX; i++)
		if (happened(&w, w.screen[i][0]) || happened(&w, w.screen[i][1]))
			screen_step(s, &s->screens[i], happened(&w, w.screen[i][0]),
				    happened(&w, w.screen[i][1]));
	for (size_t i = w.spawn; i < w.n; i++)
		if (w.p[i].revents) {
			spawn_step(s);
			break;
		}
	if (w.p[POLL_SIGNER].revents)
		seal_lost(s);
	if (w.p[POLL_SIGNALS].revents)
		pulse_signal(s);
	if (w.p[POLL_JOB].revents)
		on_job(s);
	/* What came before something else is written down before it. */
	if (w.p[POLL_MEDIATOR].revents || (quiet > 0 && s->mediator >= 0))
		watch_event(s);
	if (w.p[POLL_LOOK].revents)
		look_event(s);
	if (w.p[POLL_EGRESS].revents)
		net_event(s);
	if (w.p[POLL_READER].revents)
		net_read_event(s);
	if (w.p[POLL_GIT].revents)
		gitnet_event(s);
	if (w.p[POLL_ASK].revents)
		ask_key(s);
	for (size_t i = 0; i < EARLY_MAX; i++)
		if (w.p[POLL_EARLY + i].revents)
			net_first(s);
	if (w.p[POLL_LISTENER].revents)
		watch_call(s, w.p[POLL_LISTENER].revents);
	/* The keeper changes them before it says so. */
	if (w.p[POLL_MOUNTS].revents & (POLLPRI | POLLERR))
		hear_mounts(s);
	if (w.p[POLL_KEEPER].revents)
		control_keeper(s);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (happened(&w, w.client[i]) && s->clients[i].fd == w.p[w.client[i]].fd)
			control_serve(s, i);
	if (w.p[POLL_CONTROL].revents)
		control_accept(s);
	if (w.p[POLL_JAIL].revents)
		hear_message(s);
}

/*
 * session_priv.h - what the files of a session share
 *
 * Reads:  session/session.h
 * Writes: nothing
 * Next:   session.c owns the loop
 */
#ifndef WRIT_SESSION_SESSION_PRIV_H
#define WRIT_SESSION_SESSION_PRIV_H

#include <signal.h>

#include "adapter/host.h"
#include "audit/slog.h"
#include "base/fd.h"
#include "base/packet.h"
#include "codec/json.h"
#include "crypto/crypto.h"
#include "egress/egress.h"
#include "git/git.h"
#include "l7/settings.h"
#include "limit/cgroup.h"
#include "mediate/mediate.h"
#include "repo/repo.h"
#include "session/front.h"
#include "session/session.h"
#include "term/relay.h"
#include "wire/upstream.h"

enum session_state {
	SESSION_STARTING = 0, /* the jail is being built */
	SESSION_RUNNING,
	SESSION_ENDING, /* everything inside is being killed */
	SESSION_ENDED,
};

enum { EARLY_MAX = 3 /* names twice, and the proxy */, PORTS_MAX = 64, QUESTIONS_MAX = 64 };
enum { BURSTS_MAX = 64, GATES_MAX = 64, READBACK_MAX = 48 };

enum { DENIALS_MAX = 512, CLIENTS_MAX = 32, GRANTS_MAX = 256, COMMANDS_MAX = 256 };
enum { SCREENS_MAX = 16, SCREEN_BACK = 64 << 10 }; /* terminals; bytes shown to who attaches */

/* Something that was refused, and may be granted by its number. */
struct denial {
	enum mediate_op op;
	uint32_t rule;
	uint32_t count;
	bool named; /* a program was given the name: nobody saw it fail */
	int32_t pid;
	char comm[16];
	char object[MEDIATE_TEXT];
	char why[128];
};

enum grant_state {
	GRANT_NONE = 0,	 /* an empty place, or taken back */
	GRANT_ATTACHING, /* the keeper was asked for its mount */
	GRANT_UNWANTED,	 /* the same, and revoked meanwhile: it goes as soon as it is there */
	GRANT_HELD,
	GRANT_DETACHING, /* the keeper was asked to take its mount away */
};

/* A live grant. Mounts lie upon each other in the order of their numbers. */
struct grant {
	enum grant_state state;
	uint32_t number;
	bool write, net;
	char path[JAIL_PATH];	  /* of the network: its capabilities */
	char scope[CAP_TEXT_MAX]; /* what its capabilities say after the action */
	char rule[JAIL_PATH + 16];
};

/* An agent that runs, or somebody who asks for one. */
struct sub {
	pid_t pid; /* of its supervisor; 0: there is none yet */
	int pidfd, fd;
	struct sv name;
	char id[SESSION_ID + 1];
};
enum { SUBS_MAX = 16 };

/* The session of a token: nobody's yet, ours, begun. */
enum token_state { TOKEN_UNUSED = 0, TOKEN_CLAIMED, TOKEN_SPENT };

/* What a person is asked. */
struct question {
	uint32_t id;
	bool reader; /* it asks, not egress */
	char object[MEDIATE_TEXT];
};

/* A command that is running. */
struct running {
	uint32_t id;
	bool pty, late; /* it has a terminal; it was ended by its time limit */
	uint64_t started_ms;
};

/*
 * The terminal of a command, held by us: the command goes on whoever looks at it. One
 * client looks and types, over a socket. An ended one stays until its place is needed.
 */
struct screen {
	uint32_t command; /* 0: an empty place */
	int pty;	  /* the master; -1: not there yet, or ended */
	int link;	  /* to the client that is attached, or -1 */
	size_t client;	  /* that one */
	bool keep;	  /* it goes on without a client */
	bool hung;	  /* nobody has the other side open any more */
	bool ended, full;
	int status;	    /* once ended */
	uint64_t output;    /* bytes so far */
	char *back;	    /* the last SCREEN_BACK of them, a ring; NULL until the first */
	struct buf in, out; /* what the terminal, and the client, did not take yet */
	size_t in_at, out_at;
	char name[64];
};

struct paths {
	struct sv home, tmp, shm, run, info, state, record; /* on the host */
	struct sv trust;			       /* certificates; empty: none */
	struct sv rules;			       /* what the agent may do, as text */
	struct sv spawn;			       /* the socket of agents; empty: none */
	const char *gate;			       /* of a home that goes with us; NULL: none */
	int run_fd;				       /* of the run directory; -1: not made yet */
};

/* The last signal that came: from whom, and did the shell's process pass it on? */
struct signalled {
	uint32_t number, from;
	bool passed;
	uint64_t ms;
};

/* A name that was refused, and how often again. */
struct burst {
	char host[256], why[96];
	uint32_t rule;
	uint64_t since_ms, more;
};

/* One thing that the kernel says about the jail: "NAME WANTED FOUND". */
struct readback {
	size_t n;
	struct readback_row {
		enum host_boundary boundary;
		bool read, agrees;
		bool said; /* by writ-init: the kernel does not tell */
		char text[80];
	} rows[READBACK_MAX];
	uint64_t own[JAIL_SPACES]; /* our own namespaces */
	char spaces[JAIL_SPACES][32];
	bool mounts_known;
	struct digest mounts; /* of the list */
};

/* What is known of the jail before anything runs in it. */
struct probing {
	struct host_bait bait;
	int listener;	     /* the bait on the host's loopback; -1: none */
	struct digest names; /* of the environment's names */
	struct probe_gate {  /* commands that wait until all is on record */
		uint32_t id;
		int fd;	   /* -1: it waits in its exec */
		pid_t pid; /* once it has tried what is to be tried */
	} gates[GATES_MAX];
	size_t gates_n;
	bool tried;    /* what one tried is on record, or about to be */
	bool released; /* one was let go */
	bool open;     /* a boundary was seen open; @err says which */
	struct writ_err err;
	struct jail_probed start;
	struct readback read;
};

struct session {
	struct arena *a;
	const struct session_options *opt;
	struct session_options late; /* with what await() has said */
	enum session_state state;
	char id[SESSION_ID + 1];
	struct paths paths;
	struct sv guarantees;	    /* the plan as JSON */
	struct digest plan, policy; /* of that, and of the rules */
	uint64_t dropped;	    /* events that were too many */
	struct slog log;	    /* what happened */
	struct probing probing;
	bool log_failed;   /* it could not be written */
	bool sealing;	   /* the realm's log knows that it began */
	struct seal *seal; /* what is known of that log; NULL: nothing */
	int signer;	   /* who keeps that log instead of us; -1: nobody */
	int feed;	   /* denials.jsonl inside */
	struct jail jail;
	struct host_view view;
	struct repo_identity identity; /* who commits, as the person says */
	struct cgroup cgroup;
	struct cgroup_hits hits;
	pid_t mediator_pid;
	int mediator;		     /* socket; -1: there is none yet, or nothing is mediated */
	int listener;		     /* of the first command, while there is no mediator; else -1 */
	bool first;		     /* its first program was let through */
	uint64_t execs_ms, quiet_ms; /* since when @execs is counted; until then it is not heard */
	uint32_t execs;
	int inside; /* the root of the jail, as its first program saw it; -1: not asked for yet */
	pid_t look_pid;
	int look;	  /* socket of the process that looks at arguments; -1: none */
	uint32_t looks;	  /* what it has not answered */
	uint64_t look_ms; /* when it was last heard, if it is to answer */
	bool look_lost;	  /* it did not, and was left behind */
	pid_t egress_pid, resolver_pid, reader_pid;
	int reader;			 /* socket of the process that reads requests; -1: none */
	bool reads;			 /* there is to be one */
	const struct upstream *upstream; /* a proxy outside; NULL: none */
	struct sv more_roots;		 /* authorities of the operator's own, PEM */
	int totals_fd;			 /* what the session used of its limits; -1: none */
	struct quota_total *totals;
	uint32_t reader_deaths;
	pid_t git_pid;
	int git_hand; /* where it gets connections that egress took; -1: it takes them itself */
	int git, git_listener; /* socket of the process that fetches and pushes; where it listens */
	uint32_t git_deaths;
	git_repos repos;
	struct question questions[QUESTIONS_MAX]; /* the first is being asked */
	size_t questions_n;
	uint64_t question_ms; /* since when; 0: not yet */
	uint64_t key_ms;      /* when it was shown, or the last key came */
	struct burst bursts[BURSTS_MAX], others;
	size_t bursts_n;
	int asking_tty;		    /* -1: no question stands there */
	struct sv *secrets;	    /* values, by index of the policy's */
	char *secret_room;	    /* where they are */
	char placeholder[33];	    /* what makes those of this session different */
	int egress;		    /* socket; -1: nothing has asked for the network yet */
	uint64_t heard_ms, rest_ms; /* since when @heard is counted; until then nobody listens */
	uint32_t heard;
	struct egress_port ports[PORTS_MAX]; /* of `listen`, until egress has them */
	size_t ports_n;
	int route[2];	      /* pair of egress and the mediator, until they have it; 0: none */
	int early[EARLY_MAX]; /* listeners of its own that wait for it; -1: none */
	int signals, control;
	bool stirred; /* something happened since it rested last */
	int mounts;   /* the jail's mountinfo, where something is covered up; else -1 */
	struct client {
		int fd;
		uint32_t grant;	  /* waiting for the keeper about this one; 0: none */
		bool revokes;	  /* and wants it to go */
		uint32_t command; /* waiting for this command's end; 0: none */
		uint32_t joins;	  /* waiting for the terminal of this one; 0: none */
	} clients[CLIENTS_MAX];
	uint32_t commands; /* ids given so far */
	struct running running[COMMANDS_MAX];
	size_t running_n;
	struct screen screens[SCREENS_MAX];
	struct relay *relay;
	struct front front;
	bool relay_done;
	int exit_code; /* once known */
	bool has_exit;
	bool reported;	      /* a start failure has been shown */
	const char *ended_by; /* a limit, or NULL */
	uint64_t started_ms, active_ms, killed_ms;
	uint64_t idle_ms; /* since when it seemed to be idle, before we looked again */
	uint64_t activity;
	VEC(struct denial) denials;
	VEC(struct grant) grants;
	bool interactive; /* standard input is a terminal */
	bool stopped;	  /* the command is, and the terminal is another's */
	struct signalled signalled;
	struct writ_err err; /* why it could not start */
	bool seen_exec;
	bool failed;
	bool emptied; /* nothing but pid 1 was left */
	bool hurried; /* somebody, or a limit, has ended it */
	bool egress_finished, reader_finished;
	int64_t strays; /* what could not be ended; -1: nobody knows */
	uint64_t finish_ms;
	uint64_t read_ms; /* when somebody last read what is left of its output, or might have */
	enum jail_step failed_step;
	uint64_t asked_ms;		     /* when somebody asked it to end */
	uint64_t token_ms;		     /* when its token ends */
	uint64_t token_at_ms, token_look_ms; /* since when that is known; when it is looked at */
	enum token_state token_state;
	struct quota_shared shared; /* counted with other sessions; no cells, no pools: nothing */
	int shared_fd;		    /* where; -1: nowhere */
	int spawn;		    /* where agents are asked for; -1: there are none */
	uint32_t spawned;	    /* how many were */
	struct sub subs[SUBS_MAX];
};

/* place.c */
must_check int session_make_id(char ret_id[static SESSION_ID + 1], struct writ_err *err);
must_check int session_place_make(struct session *s, struct writ_err *err);
/* Gives back memory that was needed to start: from now on it mostly waits. */
void session_rest(void);
must_check int session_place_record(struct session *s, struct writ_err *err);
/* The directory of the control socket; made when it is first asked for. */
must_check int session_place_run(struct session *s, struct writ_err *err);
void session_place_clear(struct session *s);

/*
 * helper.c: processes of ours that speak with us over a socket. What one runs does not come
 * back; it has @socket, and whatever else was open.
 */
typedef void helper_main(struct session *s, int socket);
must_check int helper_start(struct session *s, helper_main *run, const char *name, pid_t *ret_pid,
			    int *ret_socket, struct writ_err *err);
must_check int helper_pair(int ret_ends[static 2], struct writ_err *err);
/* In the child: it ends with @parent, has no terminal, and no signal is held back. */
void helper_begin(pid_t parent);
/* Kills it. One that a dead file system holds stays, and is not waited for longer than @ms. */
void helper_end(pid_t pid, int ms);

/* record.c: one event. Members are written between begin and end. */
void record_begin(struct session *s, struct entry *e, const char *event);
void record_str(struct entry *e, const char *key, struct sv value);
void record_num(struct entry *e, const char *key, int64_t value);
void record_end(struct session *s, struct entry *e);
/* What ends from here on is written by record_flush(), all at once. */
void record_gather(struct session *s);
void record_flush(struct session *s);
/* It cannot be written any more: the session ends. */
void record_failed(struct session *s, const struct writ_err *err);
uint64_t clock_ms(void);
uint64_t cpu_ms(void); /* that we had a processor */

/* seal.c: the log of the realm */
must_check int seal_start(struct session *s, struct writ_err *err);
/* Fails, and has said why, if the log of the realm does not have it, signed. */
must_check int seal_end(struct session *s);
struct signer_install;
/* Whether somebody keeps the log instead of us, and who. */
must_check int seal_signer(struct session *s, struct signer_install *ret, struct writ_err *err);
/* Who keeps the log instead of us has ended, or refuses: nothing goes on without it. */
void seal_lost(struct session *s);
void seal_ready(struct session *s); /* the end is near: what can be done before it is */
void seal_clear(struct session *s);

/* witnessed.c: the witnesses of the realm's log are asked, if there are any */
struct log_place;
struct pins;
must_check int witnessed_read(const struct log_place *place, struct pins *ret,
			      struct writ_err *err);
/* @known: what witnessed_read() just said; NULL: it was not asked, or failed. */
void witnessed(struct session *s, const struct log_place *place, const struct pins *known);

/* probe.c: what is tried inside, and what comes of it */
must_check int probe_open(struct session *s, struct writ_err *err);
/* What the session begins under, for its first entry. */
void probe_describe(const struct session *s, struct entry *e);
/* *@ret_fd is what command @id waits at; untouched if its exec does, or it need not wait. */
must_check int probe_gate(struct session *s, uint32_t id, int *ret_fd, struct writ_err *err);
void probe_heard(struct session *s, const struct jail_message *m, const struct jail_probed *p,
		 pid_t pid);
void probe_listener(struct session *s, uint32_t id); /* before its calls are */
void probe_shut(struct session *s, uint32_t id);     /* it will not go on */
void probe_clear(struct session *s);

/* executable.c: which program it is made for, by its bytes */
void executable_record(const struct session *s, struct entry *e);

/* refuse.c: is a session ended where a boundary was seen open? */
bool probe_refuses(void);

/*
 * readback.c: what the kernel says. First about pid 1, as soon as its jail is closed and
 * while the first command is being made; then about @pid, the process that becomes it.
 * @p is what that process said itself.
 */
void readback_sealed(const struct session *s, struct readback *r);
void readback_take(const struct session *s, pid_t pid, const struct jail_probed *p,
		   struct readback *r);

/* token.c: sessions that tokens opened */
void token_record(struct session *s);
/* Ends the session if its token has; milliseconds until it looks again, at most @least. */
int token_timeout(struct session *s, int least);
must_check bool token_is_over(struct session *s);

/* open.c: the proof, and that a session is begun once */
struct token_id;
must_check int token_begin(struct session *s, struct writ_err *err);
/* Before the first program is let go. */
must_check int token_spend(struct session *s, struct writ_err *err);
/* If nothing ran it can be used again. */
void token_close(struct session *s);
void token_name(const struct token_id *sid, char ret_id[static SESSION_ID + 1]);

/* meter.c: what is counted with other sessions */
must_check int meter_open(struct session *s, struct writ_err *err);
/* What agents of @s count with it; *@ret points to *@room. */
void meter_above(const struct session *s, struct wallet_level *room, struct session_above *ret);
void meter_close(struct session *s);

/* delegate.c: what an agent gets of its session */
must_check int delegate_prices(struct arena *a, struct cap_set *set, struct writ_err *err);
must_check int delegate_policy(struct session *s, const struct policy_agent *agent,
			       struct policy *ret, struct writ_err *err);
/* If it is refused, @err and @ret->why say why. */
must_check int delegate_token(struct session *s, const struct policy_agent *agent,
			      const struct token_id *sid, struct session_token *ret,
			      struct writ_err *err);

/* spawn.c: agents of the policy, each in a session of its own */
bool session_spawns(const struct policy *p);
must_check int spawn_open(struct session *s, struct writ_err *err);
size_t spawn_poll(const struct session *s, struct pollfd ret[static 1 + 2 * SUBS_MAX]);
void spawn_step(struct session *s);
void spawn_end(struct session *s);
void spawn_record(struct session *s);

/* command.c */
struct command_ask {
	uint32_t id;
	bool last; /* the session ends with it */
	char *const *argv, *const *environ;
	struct sv cwd, program;
	uint32_t pty, given, umask;
	const int *fds; /* three; those of @given are sent along */
	uint16_t rows, cols;
};
must_check int command_send(struct session *s, const struct command_ask *ask, struct writ_err *err);
/* Why a command did not run, for people. */
void command_why(const struct session *s, const struct writ_err *err, struct writ_err *ret);
struct sv environ_get(char *const *envp, struct sv name);

/* watch.c: the mediator's process */
/* Takes @fd. @first: of the command that the session was made for. */
must_check int watch_listener(struct session *s, int fd, bool first, struct writ_err *err);
must_check int watch_rule(struct session *s, bool grant, const char *cap, struct writ_err *err);
void watch_event(struct session *s); /* all that there is to hear */
/* For so many milliseconds, of @most, the mediator's events may wait; 0: hear them at once. */
int watch_quiet(struct session *s, int most);
void watch_call(struct session *s, short revents); /* something at session.listener */

/* net.c: the way to the network */
bool net_wanted(const struct session *s);
must_check int net_start(struct session *s, struct writ_err *err);
void net_listeners(struct session *s, uint32_t first, const int *fds, size_t n);
void net_bound(struct session *s, uint32_t id, int fd);
/* What is counted against limits of the session; there is none where nothing is limited. */
must_check int net_totals(struct session *s, struct writ_err *err);
void net_event(struct session *s);
/* @count 0: it stands for itself. */
void net_record(struct session *s, const struct egress_event *e, uint64_t count);
int net_rest(struct session *s, int most); /* how long of @most ms; 0: not at all */
/* All that there is to hear from egress or the reader. False: it is gone. */
must_check bool net_hear(struct session *s, const int *from);
void net_read_event(struct session *s);
void net_first(struct session *s); /* somebody looks for the network */
must_check bool net_grant(struct session *s, const struct grant *g);
void net_revoke(struct session *s, const struct grant *g);
void net_clear(struct session *s);

/* finish.c: what the session sent is passed on; net_finish() waits, and hears what is said */
must_check bool finish_waits(void *ctx); /* of relay_finish(): for who does not read */
void net_finish_begin(struct session *s);
void net_finish(struct session *s);

/* gitnet.c: the process that fetches and pushes */
must_check int gitnet_start(struct session *s, int listener, struct writ_err *err); /* takes it */
/* Without a network of the session's own, egress takes its connections. */
bool gitnet_is_handed(const struct session *s);
must_check int gitnet_start_handed(struct session *s, struct writ_err *err);
void gitnet_hand(struct session *s, int fd);
void gitnet_event(struct session *s);
/* The @i-th variable that leads git inside to it. False: there are no more. */
must_check bool gitnet_name(struct session *s, size_t i, struct sv *ret_name, struct sv *ret_value);
void gitnet_clear(struct session *s);

/* burst.c: names that are refused over and over */
bool burst_is_first(struct session *s, const struct egress_event *e);
void burst_flush(struct session *s, bool all);
int burst_timeout(struct session *s, int least);

/* operator.c: what stands in writ's own environment */
must_check int operator_load(struct session *s, struct writ_err *err);
/* Takes @roots. */
must_check int operator_roots(const struct session *s, int roots, int *ret_fd,
			      struct writ_err *err);
void operator_record(const struct session *s, struct entry *entry);

/* read.c: the process that reads requests */
bool read_needed(const struct session *s);
must_check int read_prepare(struct session *s, struct writ_err *err);
must_check int read_start(struct session *s, struct writ_err *err);
must_check int read_wait(struct session *s, struct writ_err *err);
must_check int read_trust(struct session *s, struct sv pem, struct writ_err *err);
/* The @i-th variable that tells programs whom to trust. False: there are no more. */
must_check bool read_trust_name(const struct session *s, size_t i, struct sv *ret_name,
				struct sv *ret_value);

/* ask.c: a person decides */
void ask_add(struct session *s, uint32_t id, bool reader, const char *object);
void ask_next(struct session *s);
void ask_key(struct session *s);
int ask_terminal(const struct session *s); /* where an answer may come from now, or -1 */
int ask_timeout(struct session *s, int least);

/* secret.c */
must_check int secrets_fetch(struct session *s, struct writ_err *err);
must_check bool secret_shown(struct session *s, size_t i, struct sv *ret);
void secrets_wipe(struct session *s);

/* denial.c */
void denial_note(struct session *s, const struct mediate_event *e);
void denial_note_named(struct session *s, const struct mediate_event *e); /* nobody saw it fail */
void denial_show_all(struct session *s);
void denial_explain_all(const struct session *s); /* once it is over */
void say(const struct session *s, const char *fmt, ...) printf_like(2, 3);

/* look.c: files that a command line names and that are not there inside */
void look_at(struct session *s, const struct mediate_event *e); /* an exec */
void look_event(struct session *s);
/* Leaves behind who does not answer; milliseconds until it is late, at most @least. */
int look_timeout(struct session *s, int least);
void look_finish(struct session *s); /* what it still has to say, if nobody is in a hurry */
void look_end(struct session *s);

/* control.c */
must_check int control_open(struct session *s, struct writ_err *err);
void control_accept(struct session *s);
int session_accept(int listener); /* -1: nobody, or there is no room */
void control_serve(struct session *s, size_t client);
void control_keeper(struct session *s);
void control_close(struct session *s);
/* The last word to a client. */
void control_answer(struct session *s, size_t client, const char *fmt, ...) printf_like(3, 4);
void control_drop(struct session *s, size_t client);

/* grant.c: live grants */
void grant_more(struct session *s, size_t client, struct sv rule);
void grant_take_back(struct session *s, size_t client, struct sv what);
void grant_done(struct session *s, uint32_t number, struct writ_err *err); /* by the keeper */
must_check bool grant_is_moving(const struct session *s); /* one is coming or going */

/* more.c: commands of clients, and news of those that some client waits for */
void more_exec(struct session *s, size_t client, struct sv rest, const int *fds, size_t fds_n);
void more_attach(struct session *s, size_t client, struct sv number);
void more_signal(struct session *s, size_t client, struct sv number);
void more_detach(struct session *s, size_t client);
void more_hang_up(struct session *s, size_t client);
void more_tell(const struct session *s, size_t client, const int *fds, size_t fds_n,
	       const char *fmt, ...) printf_like(5, 6);
/*
 * Sends a command that is not the one of a run. Its terminal is held by us; it goes on
 * without a client if @keep. @given are its descriptors, and stay the caller's.
 */
must_check int more_send(struct session *s, struct command_ask *ask, bool keep, int given[static 3],
			 struct writ_err *err);
void more_terminal(struct session *s, uint32_t id, int fd); /* takes @fd */
void more_stopped(struct session *s, uint32_t id);
void more_failed(struct session *s, uint32_t id, const struct writ_err *err);
/* Returns the status to record: that of the command, or that of its time limit. */
int more_exited(struct session *s, uint32_t id, int status);
/* Ends commands whose time is over; milliseconds until the next, at most @least. */
int more_timeout(struct session *s, int least);

/* past.c: removes old records as a session ends, once in a while */
void past_tidy(struct sv state);

/* client.c: a socket to the session that @id is the beginning of; its whole name */
must_check int client_open(struct sv state, struct sv id, char ret_id[static SESSION_ID + 1],
			   struct writ_err *err);

/* screen.c: terminals we hold */
void screen_init(struct session *s);
void screen_clear(struct session *s);
struct screen *screen_get(struct session *s, uint32_t command);
/* A place for @command, or NULL: all are in use by commands that run. */
struct screen *screen_take(struct session *s, uint32_t command, struct sv name, bool keep);
void screen_free(struct screen *c);		     /* the place is empty again */
void screen_open(struct screen *c, int pty);	     /* takes @pty */
void screen_say(struct screen *c, const char *text); /* a line of ours on it */
/* Joins @client, taking it from whoever had it. @joined: somebody looked at it before. */
must_check int screen_attach(struct session *s, struct screen *c, size_t client, bool joined,
			     struct writ_err *err);
void screen_leave(struct screen *c); /* without its client */
void screen_end(struct session *s, struct screen *c, int status);
void screen_poll(const struct screen *c, struct pollfd ret[static 2]);
void screen_step(struct session *s, struct screen *c, short pty, short link);

/* hear.c: what writ-init says */
void hear_message(struct session *s);
void hear_mounts(struct session *s); /* the jail's mounts have changed */

/* job.c: the process that the shell sees */
bool job_stop(const struct session *s); /* stops it; false: there is none */
void job_wake(const struct session *s); /* so that it sees us end */
int job_heard(const struct session *s); /* 1: it was let go on, 0: nothing, -1: it is gone */

/* pulse.c: signals of ours, and time */
/* @ALONE_MS: what ends sooner is never spoken to, and gets no control socket. */
enum { GRACE_MS = 2000, ALONE_MS = 20, DOUBLE_MS = 100 };
must_check int pulse_open(struct session *s, struct writ_err *err);
void pulse_signal(struct session *s);
void pulse_hurry(struct session *s);
void pulse_signals(sigset_t *ret);     /* those that reach the command through us */
void pulse_stop(struct session *s);    /* the command stopped itself */
void pulse_go_on(struct session *s);   /* the shell's process was let go on */
int pulse_timeout(struct session *s);  /* acts on what is due; ms until the next */
void session_reach(struct session *s); /* from now on others can speak to it */

/* strays.c: what is left of tier B when writ-init is gone */
void strays_expect(const struct session *s); /* before anything runs */
void strays_end(struct session *s);	     /* ends it, or says that it could not */

/* start.c: everything until the first command is let go */
must_check int session_begin(struct session *s, struct writ_err *err);
void session_hear_why(struct session *s, struct writ_err *err); /* what the jail said last */

/* loop.c: waits for what comes, and acts on it */
void session_step(struct session *s);

/* session.c */
void session_end(struct session *s, const char *why, int exit_code);

#endif

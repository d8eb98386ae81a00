/*
 * client.h - requests to running sessions, over their control sockets
 *
 * Reads:  the sockets below the state directory
 * Writes: a terminal, while a command is attached to it
 * Next:   cli/ and lib/ call these functions; control.c answers the requests
 */
#ifndef WRIT_PARTS_CLIENT_H
#define WRIT_PARTS_CLIENT_H

#include <jansson.h>

#include "loop/session.h"

struct session_info {
	char id[SESSION_ID + 1];
	int64_t pid;	  /* process id of the supervisor */
	uint64_t started; /* age of the session, in seconds */
	char state[16];
	char command[256];
	char workspace[1024];
	uint32_t denials;
};

/* Calls @each for every running session below @state; @each returns false to stop. */
must_check int session_list(struct sv state, struct arena *a,
			    bool (*each)(void *ctx, const struct session_info *info), void *ctx,
			    struct writ_err *err);

/*
 * Sends one request of docs/control.md to the session whose id begins with @id. Takes ownership of
 * @params. The caller owns *@ret_result; @ret_result may be NULL.
 */
must_check int session_call(struct sv state, struct sv id, const char *method, json_t *params,
			    json_t **ret_result, struct writ_err *err);

/* Formats the answer to session.wait. */
json_t *session_report_json(const struct session_report *report);

/* How a client shows a command to a person, and how the view ended. */
struct session_look {
	bool neutral; /* make escape sequences harmless; the session may also ask for this */
	/* exec: the command is sent SIGTERM once this descriptor is readable; 0: none */
	int owner;
	bool detach; /* exec: the command has its own terminal and keeps running without a client */
	/* attach: command to join; 0: the only command. Set to the number of the command */
	uint32_t number;
	char id[SESSION_ID + 1]; /* set: the complete id of the session */
	bool left;		 /* set: the command keeps running after this client has left */
	bool taken; /* set: this client left because another client has joined the command */
};

/*
 * Runs one more command in a running session, with the caller's standard descriptors. If the
 * command could not be run, @err has the reason and *@ret_exit is 126 or 127. @look may be NULL.
 */
must_check int session_exec(struct sv state, struct sv id, char *const *argv, char *const *environ,
			    struct sv cwd, struct session_look *look, int *ret_exit,
			    struct writ_err *err);

/*
 * Joins the terminal of a command: shows its latest and its further output, and sends it the
 * caller's keys. Returns when the command ends, with its status in *@ret_exit, or when this client
 * leaves the command (@look->left).
 */
must_check int session_attach(struct sv state, struct sv id, struct session_look *look,
			      int *ret_exit, struct writ_err *err);

struct rpc_conn;
/* Connects to the session whose id begins with @id, and returns its complete id. */
must_check int session_client_open(struct sv state, struct sv id,
				   char ret_id[static SESSION_ID + 1], struct rpc_conn **ret,
				   struct writ_err *err);

#endif

/*
 * rpc.h - JSON-RPC 2.0 between a session and its clients, one object per line
 *
 * Theory of operation
 *
 * A connection is a UNIX stream socket. Each message is one JSON object and a newline. Both ends
 * use struct rpc_conn: rpc_receive() reads what the socket holds, rpc_next() takes one message
 * after the other out of it, and answers are queued and written by rpc_flush(). The functions never
 * wait, except rpc_wait() and rpc_call(), which are for clients that have nothing else to do.
 *
 * A server describes its methods in a const table and hands every message to rpc_dispatch(). The
 * dispatcher refuses unknown methods, wrong states and too many requests; a handler only sees calls
 * that it may answer. A handler answers at once, or keeps the call: struct rpc_call stays in the
 * connection until rpc_result() or rpc_refuse(). Answers may therefore come in any order.
 *
 * Descriptors travel with the sendmsg() that holds their message; the member "fds" of the message
 * counts them. Parameters that do not fit into a line travel in a memfd, which then is the first
 * descriptor, and "file":true replaces "params". Byte strings that are not UTF-8 are written
 * {"base64":"..."}.
 *
 * Limits: a line has at most RPC_LINE_MAX bytes and RPC_DEPTH_MAX levels; RPC_CALLS_MAX requests of
 * a client may be unanswered; RPC_OUT_MAX bytes may wait for a client that does not read. A client
 * loses its connection (rpc_is_lost()) if it sends a longer line, leaves more than RPC_OUT_MAX
 * bytes unread, or sends descriptors that do not match its messages. The server answers other
 * mistakes of a client with a typed error.
 *
 * Invariants
 *   - Descriptors that no message claims are closed, never attributed to a later message.
 *   - A parameter file is a memfd: reading it cannot block, whoever the client is.
 *   - A lost connection sends and receives nothing more, except the error that rpc_dispatch() sends
 *     as the reason.
 *
 * Common mistakes
 *   - Handlers own the descriptors of a message only after rpc_take_fd(); the others are closed.
 *   - A handler may lose the connection of another client by writing to it. Loop over connections
 *     again instead of keeping pointers to calls across an answer.
 *
 * Reads:  one UNIX stream socket, and memfds that come with messages
 * Writes: the same socket
 * Next:   parts/control.c answers requests; parts/client.c and lib/ send requests
 */
#ifndef WRIT_RPC_RPC_H
#define WRIT_RPC_RPC_H

#include "base/arena.h"
#include "base/packet.h"
#include "codec/json.h"

enum {
	RPC_LINE_MAX = 1 << 20,
	RPC_DEPTH_MAX = 32,
	RPC_CALLS_MAX = 64,
	RPC_OUT_MAX = 2 << 20,
	RPC_FDS_MAX = PACKET_FDS,
	RPC_FILE_MAX = 64 << 20, /* limit for a parameter file, in bytes */
	RPC_ID_MAX = 64,	 /* limit for an id that is a string, in bytes */
};

/*
 * Codes of errors in answers. Zero is the least informative code. rpc_code_name() returns the names
 * used in "data.code".
 */
enum rpc_code {
	RPC_E_INTERNAL = 0,
	RPC_E_PARSE,   /* code -32700 in JSON-RPC */
	RPC_E_REQUEST, /* code -32600 in JSON-RPC */
	RPC_E_METHOD,  /* code -32601 in JSON-RPC */
	RPC_E_PARAMS,  /* code -32602 in JSON-RPC */
	RPC_E_NOT_FOUND,
	RPC_E_EXISTS,
	RPC_E_PERMISSION, /* the file system refuses the request */
	RPC_E_DENIED,	  /* the policy or the session refuses the request */
	RPC_E_NEEDS_APPROVAL,
	RPC_E_TIMEOUT,
	RPC_E_OUTPUT_LIMIT,
	RPC_E_LIMIT, /* the request exceeds a limit on size or on requests at once */
	RPC_E_SESSION_GONE,
	RPC_E_UNSUPPORTED,
	RPC_E_POLICY,		/* the policy is malformed; the name is "policy_error" */
	RPC_E_CANNOT_GUARANTEE, /* a rule cannot be enforced; the name is "cannot_guarantee" */
	RPC_E_COUNT
};
const char *rpc_code_name(enum rpc_code code);

enum rpc_kind { RPC_BAD = 0, RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

struct rpc_message {
	enum rpc_kind kind;
	json_t *root;	    /* the whole message; owned by this struct */
	const char *method; /* name of the method; set for requests and notifications */
	/* id of the message, borrowed from @root; NULL: the message has no id */
	json_t *id;
	json_t *body;	    /* params (an object), result or error; owned by this struct */
	int fds[RPC_FDS_MAX];
	size_t fds_n;
	enum rpc_code code; /* reason for RPC_BAD, with the text @why */
	const char *why;
};

/*
 * A request that the server has not answered yet. The server chooses @kind and @number to find the
 * request again.
 */
struct rpc_call {
	bool used;
	json_t *id; /* id of the request, owned by this struct; NULL: a notification */
	uint32_t kind, number;
};

/* Descriptors that travel with the byte at offset @at of a buffer. */
struct rpc_fds {
	size_t at, n;
	int fds[RPC_FDS_MAX];
};
enum { RPC_SENT_MAX = 8, RPC_GOT_MAX = 2 };

struct rpc_conn {
	int fd; /* socket; owned by this struct */
	struct buf in, out;
	size_t in_at, in_seen, out_at;
	/* @got: descriptors received with bytes of @in; @sent: to be sent with bytes of @out */
	struct rpc_fds got[RPC_GOT_MAX], sent[RPC_SENT_MAX];
	size_t got_n, sent_n;
	int64_t last_id; /* id of the newest request that this end sent */
	struct rpc_call calls[RPC_CALLS_MAX];
	const char *lost; /* reason why the connection must be closed; NULL: the connection works */
};

/* --- conn.c: bytes --- */

/* takes ownership of @fd; returns NULL without memory, and then closes @fd */
struct rpc_conn *rpc_new(int fd);
void rpc_free(struct rpc_conn *c);
bool rpc_is_lost(const struct rpc_conn *c);
void rpc_lose(struct rpc_conn *c, const char *why);
/*
 * Reads once from the socket. Returns 1 if bytes came, 0 if the socket has none now, or an error if
 * the connection is over or no more bytes can be held.
 */
must_check int rpc_receive(struct rpc_conn *c, struct writ_err *err);
/*
 * Takes the next message out of the received bytes. Returns false if the bytes hold no whole
 * message or the connection is lost. The caller always clears *@ret with rpc_message_clear().
 */
must_check bool rpc_next(struct rpc_conn *c, struct rpc_message *ret);
void rpc_message_clear(struct rpc_message *m);
/* Moves the ownership of descriptor @i of message @m to the caller. */
int rpc_take_fd(struct rpc_message *m, size_t i);
/* Writes the queued bytes that the socket accepts without waiting. */
void rpc_flush(struct rpc_conn *c);
bool rpc_wants_write(const struct rpc_conn *c);
/*
 * Queues @message with duplicates of the descriptors @fds, and writes as many queued bytes as the
 * socket accepts. Takes ownership of @message.
 */
void rpc_send(struct rpc_conn *c, json_t *message, const int *fds, size_t fds_n);

/* --- serve.c: the side that answers --- */

struct rpc_method {
	const char *name;
	uint32_t states; /* bits of the states in which the method is allowed */
	void (*handle)(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m);
};

struct rpc_service {
	const struct rpc_method *methods;
	size_t methods_n;
	uint32_t state;	     /* present state of the server: one of the bits in rpc_method.states */
	enum rpc_code wrong; /* error for a method that is not allowed in the present state */
	const char *wrong_text;
};

void rpc_dispatch(struct rpc_conn *c, struct rpc_message *m, const struct rpc_service *service,
		  void *ctx);
/*
 * Answers @call with @result, which ends @call. Takes ownership of @result; if @result is NULL, the
 * answer is an empty object.
 */
void rpc_result(struct rpc_conn *c, struct rpc_call *call, json_t *result, const int *fds,
		size_t fds_n);
void rpc_refuse(struct rpc_conn *c, struct rpc_call *call, enum rpc_code code, const char *fmt, ...)
	printf_like(4, 5);
/* Answers @call with an error whose code, errno and text come from @err, which ends @call. */
void rpc_refuse_err(struct rpc_conn *c, struct rpc_call *call, const struct writ_err *err);
void rpc_notify(struct rpc_conn *c, const char *method, json_t *params);
/* Returns the first call of @c with this kind and number, or NULL. */
struct rpc_call *rpc_find_call(struct rpc_conn *c, uint32_t kind, uint32_t number);

/* --- call.c: the side that asks --- */

/*
 * Sends a request. Takes ownership of @params; NULL means that the caller had no memory, which is
 * reported as an error.
 */
must_check int rpc_request(struct rpc_conn *c, const char *method, json_t *params, const int *fds,
			   size_t fds_n, int64_t *ret_id, struct writ_err *err);
/*
 * Waits for one message until the time @until of clock_monotonic_ms() (INT64_MAX: no time limit).
 * Returns 1, 0 if no message came in time, or an error.
 */
must_check int rpc_wait(struct rpc_conn *c, int64_t until, struct rpc_message *ret,
			struct writ_err *err);
/* Is the message @m the answer to the request @id? */
bool rpc_answers(const struct rpc_message *m, int64_t id);
/* Fills @err from the RPC_ERROR message @m and returns the value of enum writ_code in @err. */
must_check int rpc_failure(const struct rpc_message *m, struct writ_err *err);
/*
 * Sends a request and waits for its answer; drops notifications that arrive meanwhile. The caller
 * owns *@ret_result; @ret_result may be NULL. A peer that does not answer in time causes WRIT_E_SYS
 * with ETIMEDOUT.
 */
must_check int rpc_call(struct rpc_conn *c, const char *method, json_t *params, int timeout_ms,
			json_t **ret_result, struct writ_err *err);

/* --- value.c: values that JSON has no form for, and parameters by name --- */

/* Makes a JSON value of @bytes. Returns a new reference; NULL without memory. */
json_t *rpc_bytes(struct sv bytes);
json_t *rpc_strings(char *const *list);
/* Copies the bytes of the JSON value @v into @a, followed by a NUL. */
must_check bool rpc_get_bytes(struct arena *a, const json_t *v, struct sv *ret);
/*
 * Copies the list @v into @a; *@ret ends with NULL. Returns false unless every item of @v has a
 * form that rpc_bytes() makes, and no NUL.
 */
must_check bool rpc_get_strings(struct arena *a, const json_t *v, char ***ret, size_t *ret_n);
/*
 * Read a number or a flag from the member @name of @object. A missing member reads as 0 or false.
 * Return false if the member has another type or the number is not between 0 and @max.
 */
must_check bool rpc_get_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret);
must_check bool rpc_get_flag(const json_t *object, const char *name, bool *ret);

#endif

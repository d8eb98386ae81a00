/*
 * check_priv.h - what every format and rule of this room shares
 *
 * Reads:  tree_priv.h
 * Writes: findings
 * Next:   compose.c, docker.c and the other formats
 */
#ifndef WRIT_LINT_CHECK_PRIV_H
#define WRIT_LINT_CHECK_PRIV_H

#include "lint/lint.h"
#include "lint/tree_priv.h"

/* The order of rules.c, which is the order of ids. */
enum rule_id {
	R_PRIVILEGED = 0,
	R_HOST_ROOT_MOUNT,
	R_HOST_SYSTEM_MOUNT,
	R_DOCKER_SOCKET,
	R_SESSION_SOCKET,
	R_ANY_UNIX_SOCKET,
	R_HOST_NETWORK,
	R_HOST_PID,
	R_HOST_IPC,
	R_HOST_UTS,
	R_HOST_USERNS,
	R_HOST_CGROUP,
	R_ESCAPE_CAPABILITY,
	R_RISKY_CAPABILITY,
	R_SECCOMP_UNCONFINED,
	R_MAC_UNCONFINED,
	R_UNMASKED_PATHS,
	R_NEW_PRIVILEGES,
	R_HOST_DEVICE,
	R_HOST_PATH,
	R_NO_SECCOMP_PROFILE,
	R_RUNS_AS_ROOT,
	R_SHARED_CONTAINER,
	R_SHARED_WORKSPACE,
	R_SHARED_PROCESSES,
	R_SERVICE_ACCOUNT_TOKEN,
	R_EXFILTRATION_HOST,
	R_WILDCARD_EGRESS,
	R_OPEN_EGRESS,
	R_UNRESTRICTED_EXEC,
	R_APPROVALS_BYPASSED,
	R_TOOLS_OUTSIDE_SANDBOX,
	R_SANDBOX_OFF,
	R_SANDBOX_WEAKENED,
	R_AUTO_TRUSTED_MCP,
	R_CONFIG_WRITABLE,
	R_UNCONFINED_MCP_SERVER,
	R_HOME_READABLE,
	R_OPEN_READS,
	R_CREDENTIAL_READABLE,
	R_SECRET_LITERAL,
	R_SECRET_BUILD_ARG,
	R_SECRET_IN_SANDBOX,
	R_MISSING_LIMITS,
	R_UNPINNED_IMAGE,
	R_UNPINNED_SERVER,
	R_FETCH_AND_RUN,
	/* keep last */
	R_COUNT
};

struct check {
	struct arena *arena;
	enum lint_format format;
	struct sv text;	 /* the whole file, without a byte order mark */
	struct sv label; /* "Deployment/agent", "docker run"; before every `where` */
	struct lint_findings *out;
	struct lint_findings found; /* unsorted */
	size_t nodes;
	/* The last position asked for, so that a rising sequence costs one pass. */
	struct {
		size_t off;
		uint32_t line, column;
	} pos;
	int failed; /* sticky, a negative enum writ_code */
	const char *failed_why;
};

const struct lint_rule *lint_rule_row(enum rule_id r);

/* Sticky: the first reason is kept and lint_run() returns it. */
void lint_fail(struct check *c, int code, const char *why);

/*
 * A finding at @at, unless the table says that @r is not for this format. The
 * rule's title says what is wrong; @detail adds what it was, or is empty.
 */
void lint_found(struct check *c, enum rule_id r, const struct node *at, struct sv detail);
printf_like(4, 5) void lint_report(struct check *c, enum rule_id r, const struct node *at,
				   const char *fmt, ...);

/* "Title: detail" */
void lint_message(const struct lint_finding *f, struct buf *b);

/* Formats: each walks the whole file. */
void lint_docker(struct check *c);
void lint_compose(struct check *c, const struct node *root);
void lint_devcontainer(struct check *c, const struct node *root);
void lint_dockerfile(struct check *c);
void lint_kube(struct check *c, const struct node *doc, bool egress_limited);
bool lint_kube_limits_egress(const struct node *doc);
void lint_claude(struct check *c, const struct node *root);
void lint_srt(struct check *c, const struct node *root);
void lint_mcp(struct check *c, const struct node *root);

/* sandbox.c: the part that Claude settings and srt settings share. */
void lint_sandbox_network(struct check *c, const struct node *network);
void lint_sandbox_writes(struct check *c, const struct node *paths);
void lint_sandbox_reads(struct check *c, const struct node *at, const struct node *filesystem,
			const struct node *credentials, const struct node *denied);
bool lint_config_path(struct sv path); /* would writing it change the next run? */

/* place.c: what a path of the host gives away. */
enum place {
	PLACE_OTHER = 0,
	PLACE_ROOT,
	PLACE_SYSTEM,
	PLACE_ENGINE,  /* container engine or hypervisor control socket */
	PLACE_SESSION, /* agents, buses and displays of the login session */
	PLACE_HOME,
	PLACE_CREDENTIAL,
};
enum place lint_place(struct sv path);
/* Does refusing @entry, a path or glob, refuse @rest below the home ("/.ssh")? */
bool lint_place_covers(struct sv entry, const char *rest);
bool lint_in_home(struct sv path);
struct sv lint_unglob(struct sv path); /* without a trailing slash, star or stars */
/* Reports @path by its place; true if it was reported. */
bool lint_place_check(struct check *c, const struct node *at, struct sv path);

/* hosts.c: one entry of an egress allowlist, or the address of a server. */
void lint_host_check(struct check *c, const struct node *at, struct sv entry);
struct sv lint_host_of(struct sv url); /* without scheme, user, port and path */

/* secret.c */
bool lint_secret_name(struct sv name);	 /* OPENAI_API_KEY, not MAX_TOKENS */
bool lint_secret_value(struct sv value); /* a known form, or high entropy */
/* Appends @line with everything that may be a secret replaced by stars. */
void lint_secret_mask(struct sv line, struct buf *b);
/* An environment variable as a format sees it. */
void lint_env(struct check *c, const struct node *at, struct sv name, struct sv value);
/* A variable that keeps its name but takes its value from the host. */
void lint_env_passed(struct check *c, const struct node *at, struct sv name);
/* Literal keys inside a word of a command, URL or header. */
void lint_secret_word(struct check *c, const struct node *at, struct sv before, struct sv word);

/* command.c */
void lint_argv(struct check *c, const struct node *const *argv, size_t n);
void lint_command(struct check *c, const struct node *command); /* string or list */
/* Two lists are one command; a string stands alone. */
void lint_commands(struct check *c, const struct node *entrypoint, const struct node *command);
struct sv lint_base(struct sv path); /* after the last slash */

/* image.c */
void lint_image(struct check *c, const struct node *at, struct sv ref);
bool lint_agentish(struct sv s); /* does the name suggest an agent or its tools? */

/* text.c */
bool lint_has(struct sv s, const char *lower); /* contains, ASCII case ignored */
bool lint_eq(struct sv s, const char *lower);  /* equal, ASCII case ignored */
bool lint_starts(struct sv s, const char *prefix);
bool lint_ends(struct sv s, const char *suffix);
bool lint_in(struct sv s, const char *const *list); /* NULL-terminated, sv_is */
/* "${X:-v}" gives v; anything else is returned as it is. */
struct sv lint_default(struct sv s);
bool lint_is_reference(struct sv s); /* $X, ${X}, $(X), {{ x }}, %X% */
/* The text before the first @sep outside ${...}; *@in moves past it. */
struct sv lint_cut(struct sv *in, char sep);

#endif

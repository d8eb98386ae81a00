/*
 * check_priv.h - state of a lint run, and functions shared by formats and rules
 *
 * Reads:  tree_priv.h
 * Writes: findings
 * Next:   compose.c, docker.c and the other formats
 */
#ifndef WRIT_LINT_CHECK_PRIV_H
#define WRIT_LINT_CHECK_PRIV_H

#include "lint/lint.h"
#include "lint/tree_priv.h"

/* Lint rules in the order of rules.c, which is the order of their ids. */
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
	/* number of values; keep last */
	R_COUNT
};

struct check {
	struct arena *arena;
	enum lint_format format;
	struct sv text;	 /* the whole linted file, without a byte order mark */
	/* "Deployment/agent", "docker run"; prefix of lint_finding.where for every finding */
	struct sv label;
	struct lint_findings *out;
	struct lint_findings found; /* findings in the order of discovery */
	size_t nodes;
	/*
	 * Cache of the position computed last, so that findings at rising positions cost one pass
	 * over the file.
	 */
	struct {
		size_t off;
		uint32_t line, column;
	} pos;
	int failed; /* first failure of the lint run, a negative enum writ_code, or 0 */
	const char *failed_why;
};

const struct lint_rule *lint_rule_row(enum rule_id r);

/* Records a failure of the lint run; lint_run() returns the first recorded failure. */
void lint_fail(struct check *c, int code, const char *why);
/* Returns @p, the result of an allocation. If @p is NULL, records in @c that memory ran out. */
void *lint_must(struct check *c, void *p);
/* Appends a value to @vec. Returns false if memory runs out, and records that in @c. */
#define lint_add(c, vec, ...) (vec_add((c)->arena, (vec), __VA_ARGS__) || lint_must((c), NULL))
/* Copies @s to the arena. Returns false if memory runs out, and records that in @c. */
must_check bool lint_keep(struct check *c, struct sv s, struct sv *ret);

/*
 * Adds a finding of rule @r at @at, unless @r does not apply to this format. @detail follows the
 * rule's title and may be empty.
 */
void lint_found(struct check *c, enum rule_id r, const struct node *at, struct sv detail);
printf_like(4, 5) void lint_report(struct check *c, enum rule_id r, const struct node *at,
				   const char *fmt, ...);

/* Prints the message of a finding as "Title: detail". */
void lint_message(const struct lint_finding *f, struct buf *b);
/* Prints the names of the guarantees in @set, bits of 1u << enum guarantee, as a JSON array. */
void lint_put_guarantees(struct buf *b, uint32_t set);

/* Entry points of the formats. Each entry point walks the whole file. */
void lint_docker(struct check *c);
void lint_compose(struct check *c, const struct node *root);
void lint_devcontainer(struct check *c, const struct node *root);
void lint_dockerfile(struct check *c);
enum { LINT_KUBE_DEPTH = 4 }; /* limit for nested lists of objects */
void lint_kube(struct check *c, const struct node *doc, bool egress_limited, unsigned depth);
bool lint_kube_limits_egress(const struct node *doc, unsigned depth);
void lint_claude(struct check *c, const struct node *root);
void lint_srt(struct check *c, const struct node *root);
void lint_mcp(struct check *c, const struct node *root);

/* Checks for settings that Claude Code and srt share (sandbox.c). */
void lint_sandbox_network(struct check *c, const struct node *network);
void lint_sandbox_writes(struct check *c, const struct node *paths);
void lint_sandbox_reads(struct check *c, const struct node *at, const struct node *filesystem,
			const struct node *credentials, const struct node *denied);
void lint_sandbox_weakened(struct check *c, const struct node *settings);
/*
 * Reports the readable path @path if it is a credential or, by the rule @home, a home directory or
 * the root directory.
 */
void lint_readable(struct check *c, const struct node *at, struct sv path, enum rule_id home);
/* Would writing @path change how the agent or the host runs next time? */
bool lint_config_path(struct sv path);

/* Checks an entry of an egress allowlist, or the address of a server (hosts.c). */
void lint_host_check(struct check *c, const struct node *at, struct sv entry);

/* --- secret.c --- */
bool lint_secret_name(struct sv name);	 /* is @name like OPENAI_API_KEY, not MAX_TOKENS? */
/* Appends @line to @b with possible secrets replaced by stars. */
void lint_secret_mask(struct sv line, struct buf *b);
/* Checks an environment variable and its value. */
void lint_env(struct check *c, const struct node *at, struct sv name, struct sv value);
/* Checks a variable whose value comes from the host. */
void lint_env_passed(struct check *c, const struct node *at, struct sv name);
/*
 * Reports literal secrets in the word @word of a command, URL or header. @before is the word before
 * @word.
 */
void lint_secret_word(struct check *c, const struct node *at, struct sv before, struct sv word);

/* --- command.c --- */
/* Appends the scalars of @list to @argv. Returns false if memory runs out. */
must_check bool lint_collect(struct check *c, struct node_list *argv, const struct node *list);
void lint_argv(struct check *c, const struct node *const *argv, size_t n);
/* checks a command given as a string or a list */
void lint_command(struct check *c, const struct node *command);
/* Checks a container's command: two lists form one command; a string is a command by itself. */
void lint_commands(struct check *c, const struct node *entrypoint, const struct node *command);
struct sv lint_base(struct sv path); /* returns the part of @path after the last slash */

/* --- container.c --- */
void lint_image(struct check *c, const struct node *at, struct sv ref);
bool lint_agent_name(struct sv s); /* does the name @s suggest an agent or its tools? */

/* --- text.c --- */
bool lint_has(struct sv s, const char *lower); /* does @s contain @lower, ignoring ASCII case? */
bool lint_eq(struct sv s, const char *lower);  /* is @s equal to @lower, ignoring ASCII case? */
bool lint_starts(struct sv s, const char *prefix);
bool lint_ends(struct sv s, const char *suffix);
bool lint_in(struct sv s, const char *const *list); /* is @s in @list, which is NULL-terminated? */
/* Does @test accept @s and some word of @list, which is NULL-terminated? */
bool lint_any(struct sv s, const char *const *list, bool (*test)(struct sv s, const char *word));
/* Returns v if @s is "${X:-v}", and any other @s unchanged. */
struct sv lint_default(struct sv s);
bool lint_is_reference(struct sv s); /* is @s a reference such as $X, ${X}, $(X), {{ x }}, %X%? */
/* Returns the text before the first @sep outside ${...} and moves *@in past that @sep. */
struct sv lint_cut(struct sv *in, char sep);

#endif

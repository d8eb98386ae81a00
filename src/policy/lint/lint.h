/*
 * lint.h - find dangerous settings in the configuration of other tools
 *
 * Theory of operation
 *
 * `writ lint` reads the files that decide how an agent is confined today: docker command
 * lines, Compose, devcontainer, Dockerfile, Kubernetes, Claude Code, srt and MCP settings.
 * It reports settings that open or weaken the boundary. policy.h does the same for
 * writ's own policies.
 *
 *   lint_detect()     chooses the format by file name, then by content
 *   json.c, yaml.c    parse into one tree of nodes with positions (tree_priv.h)
 *   shell.c           splits shell text into simple commands; words are nodes too
 *   compose.c, ...    one file per format; formats that describe containers fill a
 *                     struct container (container_priv.h), to which container.c applies
 *                     every container rule
 *   rules.c           table of rules, and which rule applies to which format
 *   render.c, sarif.c print findings as text, JSON and SARIF
 *
 * Invariants
 *   - Pure: the same bytes give the same findings. No file is opened and nothing is
 *     expanded from the environment.
 *   - A file that cannot be parsed exactly (syntax, duplicate keys, too large, too deep, too
 *     many aliases) is an error, never an empty list of findings.
 *   - A finding never contains the value of a secret; printers mask quoted lines.
 *   - Rule ids are never reused: users suppress findings by id.
 *
 * Common mistakes
 *   - A new rule needs an entry in the enum and a row in the table of rules; lint_found() ignores
 *     rules whose row does not mark the format.
 *   - Values may be references such as ${X:-v}. Use lint_default() before comparing.
 *
 * Reads:  the text of one file
 * Writes: findings in the caller's arena
 * Next:   cli/ prints findings as text, JSON or SARIF
 */
#ifndef WRIT_LINT_LINT_H
#define WRIT_LINT_LINT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cap/guarantee.h"

enum {
	LINT_BYTES_MAX = 4 * 1024 * 1024,
	LINT_DEPTH_MAX = 64,
	LINT_NODES_MAX = 400000, /* limit for nodes, counted after alias and merge expansion */
	LINT_ANCHORS_MAX = 1024,
	LINT_BOXES_MAX = 2000, /* limit for containers in one file */
	LINT_FINDINGS_MAX = 10000,
};

enum lint_format {
	LINT_UNKNOWN = 0,
	LINT_DOCKER, /* docker, podman or nerdctl command lines in any text */
	LINT_COMPOSE,
	LINT_DEVCONTAINER,
	LINT_DOCKERFILE,
	LINT_KUBE,
	LINT_CLAUDE,
	LINT_SRT,
	LINT_MCP,
	/* number of values; keep last */
	LINT_FORMAT_COUNT
};

enum lint_severity {
	LINT_ERROR = 0, /* severity: the boundary is open */
	LINT_WARNING,	/* severity: the boundary is weaker than it looks */
	LINT_INFO,	/* severity: the user should know about the setting */
	/* number of values; keep last */
	LINT_SEVERITY_COUNT
};

/* A lint rule. The const tables of rules are in rules.c and policy.c; ids are never reused. */
struct lint_rule {
	const char *id;	  /* id, such as "W104" */
	const char *name; /* name, such as "docker-socket" */
	enum lint_severity severity;
	/* guarantees that the problem endangers, as bits of 1u << enum guarantee */
	uint32_t endangers;
	const char *title;  /* title of the rule: the problem in one short line */
	const char *why;
	const char *fix;
};
_Static_assert(G_COUNT <= 32, "lint_rule.endangers holds one bit per guarantee");

/* A finding. Its texts are allocated in the caller's arena. */
struct lint_finding {
	const struct lint_rule *rule;
	/* position, 1-based; columns count code points; line 0: no position */
	uint32_t line, column;
	uint32_t width;	       /* code points of the line to underline, at least 1 */
	/* path in the document, such as "services.agent.volumes[0]"; may be empty */
	struct sv where;
	struct sv detail;      /* text after the rule's title; may be empty; never a secret */
};

/* A list of findings. Use vec_push() to append a finding. */
struct lint_findings {
	struct lint_finding *v;
	size_t n, room;
};

const char *lint_format_name(enum lint_format f); /* name of the format, such as "compose" */
must_check bool lint_format_parse(struct sv s, enum lint_format *ret_f);
const char *lint_severity_name(enum lint_severity s);

/* Returns the rule with index @i in the order of ids; NULL past the end. */
const struct lint_rule *lint_rule_at(size_t i);
/* Can @rule occur in @format? A table in docs/lint.md shows the formats of every rule. */
bool lint_applies(const struct lint_rule *rule, enum lint_format format);

/*
 * Detects the format of a file by its name, then by its content; LINT_UNKNOWN if neither is
 * conclusive.
 */
enum lint_format lint_detect(struct sv name, struct sv text);

/*
 * lint_run - append the findings about @text to *@findings, ordered by line
 *
 * With LINT_UNKNOWN, detects the format. @name is used for detection only. Findings point into
 * @arena; @text is not kept. On failure *@findings is unchanged.
 */
must_check int lint_run(struct arena *arena, enum lint_format format, struct sv name,
			struct sv text, struct lint_findings *findings, struct writ_err *err);

/*
 * Returns the kind of site if anybody can publish data on the host @name, otherwise NULL.
 * @wildcard: the rule covers the names below @name.
 */
const char *lint_exfiltration_host(struct sv name, bool wildcard);

/* A linted file with its findings, the input of the printers below. */
struct lint_file {
	struct sv name, text;
	enum lint_format format;
	const struct lint_finding *findings;
	size_t n;
	const char *error; /* reason why the file could not be read or parsed, or NULL */
};

/*
 * Prints findings like a compiler: position, severity, message, source line with caret, why, fix.
 * SECURITY: control characters of the file are replaced, and secrets in the quoted line are masked.
 */
void lint_print_text(const struct lint_file *file, struct buf *b);
/* Prints the findings as a JSON object and a newline. */
void lint_print_json(const struct lint_file *files, size_t n, struct buf *b);
/* Prints the findings as SARIF 2.1.0 and a newline. */
void lint_print_sarif(const struct lint_file *files, size_t n, struct buf *b);

#endif

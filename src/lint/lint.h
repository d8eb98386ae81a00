/*
 * lint.h - dangerous settings in the configuration of other tools
 *
 * Reads:  the text of one file: docker command lines, Compose, devcontainer,
 *         Dockerfile, Kubernetes, Claude Code, srt and MCP settings
 * Writes: nothing but findings in the caller's arena
 * Next:   cli/ prints findings as text, JSON or SARIF
 *
 * Pure: the same bytes give the same findings, no file is opened and nothing is
 * expanded from the environment. A file that cannot be read exactly (syntax,
 * duplicate keys, too large, too deep, too many aliases) is an error, never an
 * empty list. Findings never carry the value of a secret.
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
	LINT_NODES_MAX = 400000, /* after alias and merge expansion */
	LINT_ANCHORS_MAX = 1024,
	LINT_BOXES_MAX = 2000, /* containers described by one file */
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
	/* keep last */
	LINT_FORMAT_COUNT
};

enum lint_severity {
	LINT_ERROR = 0, /* the boundary is open */
	LINT_WARNING,	/* the boundary is weaker than it looks */
	LINT_INFO,	/* worth knowing */
	/* keep last */
	LINT_SEVERITY_COUNT
};

/* Const tables of these live here and in other rooms; ids are never reused. */
struct lint_rule {
	const char *id;	  /* "W104" */
	const char *name; /* "docker-socket" */
	enum lint_severity severity;
	uint32_t endangers; /* set of 1u << enum guarantee */
	const char *title;  /* what is wrong, in one short line */
	const char *why;
	const char *fix;
};
_Static_assert(G_COUNT <= 32, "lint_rule.endangers holds one bit per guarantee");

/* May be filled by other rooms as it stands; everything is tied to the arena. */
struct lint_finding {
	const struct lint_rule *rule;
	uint32_t line, column; /* 1-based, columns count code points; line 0: no place */
	uint32_t width;	       /* code points to underline on that line, at least 1 */
	struct sv where;       /* "services.agent.volumes[0]", may be empty */
	struct sv detail;      /* said after the rule's title, may be empty; no secrets */
};

/* Grows by vec_push(). */
struct lint_findings {
	struct lint_finding *v;
	size_t n, room;
};

const char *lint_format_name(enum lint_format f); /* "compose" */
must_check bool lint_format_parse(struct sv s, enum lint_format *ret_f);
const char *lint_severity_name(enum lint_severity s);

/* The table of rules, in order of id; NULL past the end. */
const struct lint_rule *lint_rule_at(size_t i);
/* By id or by name; NULL if there is none. */
const struct lint_rule *lint_rule_find(struct sv s);
/* Can @rule be seen in @format? The table shown in docs/lint.md. */
bool lint_applies(const struct lint_rule *rule, enum lint_format format);

/* By file name, then by content; LINT_UNKNOWN if neither tells. */
enum lint_format lint_detect(struct sv name, struct sv text);

/*
 * lint_run - append what is dangerous in @text to *@findings, ordered by line
 *
 * LINT_UNKNOWN means: detect. @name is used for detection only. Everything that
 * findings point to is allocated from @arena, @text is not kept. On failure
 * *@findings is as it was.
 */
must_check int lint_run(struct arena *arena, enum lint_format format, struct sv name,
			struct sv text, struct lint_findings *findings, struct writ_err *err);

/* What kind of place anyone can publish on @name is, or NULL; @wildcard: names below it. */
const char *lint_exfiltration_host(struct sv name, bool wildcard);

/* One file's outcome, as the printers take it. */
struct lint_file {
	struct sv name, text;
	enum lint_format format;
	const struct lint_finding *findings;
	size_t n;
	const char *error; /* why it could not be read, or NULL */
};

/*
 * Compiler style: place, severity, message, source line with caret, why, fix.
 * Control characters of the file never reach the terminal and secrets in a
 * quoted line are masked.
 */
void lint_print_text(const struct lint_file *file, struct buf *b);
/* One JSON object, with a newline at the end. */
void lint_print_json(const struct lint_file *files, size_t n, struct buf *b);
/* SARIF 2.1.0, with a newline at the end. */
void lint_print_sarif(const struct lint_file *files, size_t n, struct buf *b);

#endif

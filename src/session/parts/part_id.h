/*
 * part_id.h - numbers of the parts that have state, for session_state()
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   each part's own file uses its number; table.c has the order of parts
 */
#ifndef WRIT_PARTS_PART_ID_H
#define WRIT_PARTS_PART_ID_H

enum part_id {
	PART_AGENTS = 0,
	PART_COMMANDS,
	PART_CONTROL,
	PART_DENIALS,
	PART_DIRECTORIES,
	PART_ENGINE,
	PART_GIT,
	PART_GRANTS,
	PART_HINTS,
	PART_INSPECTION,
	PART_LIMITS,
	PART_LOOK,
	PART_MEDIATION,
	PART_NETWORK,
	PART_ORPHANS,
	PART_PROBE,
	PART_QUESTIONS,
	PART_RECORD,
	PART_SIGNALS,
	PART_TERMINAL,
	PART_TOKENS,
};

#endif

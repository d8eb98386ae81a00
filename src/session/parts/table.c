#include "parts/agents.h"
#include "parts/commands.h"
#include "parts/directories.h"
#include "parts/ending.h"
#include "parts/engine.h"
#include "parts/git_transport.h"
#include "parts/grants.h"
#include "parts/hints.h"
#include "parts/inspection.h"
#include "parts/mediation.h"
#include "parts/network.h"
#include "parts/orphans.h"
#include "parts/probe.h"
#include "parts/questions.h"
#include "parts/record.h"
#include "parts/resource_limits.h"
#include "parts/session.h"
#include "parts/signals.h"
#include "parts/terminal.h"
#include "parts/tokens.h"

#include "base/banned.h"

/*
 * The parts of a session. Starting, events and finishing go from top to bottom, clearing from
 * bottom to top (loop/loop.h). Comments above rows explain the order of rows where it matters.
 */
/* clang-format off */
static const struct session_part parts[] = {
	/* Move bytes of the terminal before a signal can make writ give the terminal back. */
	{ "terminal", .initial = &terminal_initial, .poll = terminal_poll, .on_event = terminal_on_event,
	  .deadline = terminal_deadline, .clear = terminal_clear },
	{ "commands", .initial = &commands_initial, .init = commands_init, .poll = commands_poll, .on_event = commands_on_event,
	  .deadline = commands_deadline, .clear = commands_clear },
	{ "signals", .initial = &signals_initial, .start = signals_start, .poll = signals_poll, .on_event = signals_on_event,
	  .late = true, .deadline = signals_deadline, .clear = signals_clear },
	{ "denials", .initial = &denials_initial, .report = denials_report },
	{ "hints", .initial = &hints_initial, .clear = hints_clear },
	{ "grants", .initial = &grants_initial },

	/* The token comes before the id, because the token may choose the session's id. */
	{ "inspection", .initial = &inspection_initial, .start = operator_start },
	{ "tokens", .initial = &tokens_initial, .start = tokens_start, .deadline = tokens_deadline },
	{ "id", .start = session_set_id },
	/* Release the limits after the directories: processes within the limits end meanwhile. */
	{ "limits", .initial = &limits_initial, .start = engine_limit, .deadline = limits_deadline, .clear = engine_release },
	{ "directories", .initial = &directories_initial, .start = directories_start, .clear = directories_clear },
	{ "meter", .start = meter_start, .clear = tokens_clear },
	{ "agents", .initial = &spawn_initial, .init = spawn_init, .start = spawn_start, .poll = spawn_poll, .on_event = spawn_on_event },
	{ "probes", .initial = &probes_initial, .start = probes_start, .clear = probes_clear },
	{ "trust", .start = inspection_prepare },

	/*
	 * Record mediated calls before the messages of the keeper and of writ-init, which came
	 * later.
	 */
	{ "mediation", .initial = &mediation_initial, .poll = mediation_poll, .on_event = mediation_on_event,
	  .deadline = mediation_deadline, .clear = mediation_clear },
	{ "look", .initial = &look_initial, .poll = look_poll, .on_event = look_on_event, .deadline = look_deadline },

	/*
	 * The row "program" compiles the jail, and "jail" starts writ-init if it does not run yet.
	 * The row "build" sends the program to writ-init, which then makes the jail's listeners.
	 * Egress must run before: the row "network" is above "build".
	 */
	{ "program", .initial = &engine_initial, .init = engine_init, .start = engine_compile },
	{ "jail", .start = engine_start, .recover = engine_recover, .kill = engine_kill, .clear = engine_clear },
	{ "network", .initial = &network_initial, .init = network_init, .start = network_start, .poll = network_poll, .on_event = network_on_event,
	  .late = true, .deadline = network_deadline, .clear = network_clear },
	{ "git", .initial = &git_transport_initial, .start = git_transport_start_handed, .poll = git_transport_poll,
	  .on_event = git_transport_on_event, .clear = git_transport_clear },
	{ "secrets", .start = secrets_fetch, .clear = secrets_clear },
	{ "reader", .start = inspection_start },
	{ "questions", .initial = &questions_initial, .init = questions_init, .poll = questions_poll, .on_event = questions_on_event,
	  .deadline = questions_deadline },
	{ "build", .start = engine_build, .poll = engine_poll, .on_event = engine_on_event },

	/* The next rows do their work while writ-init builds the jail. */
	{ "sweep", .start = directories_sweep },
	{ "guarantees", .start = record_guarantees },
	{ "await", .start = engine_await },
	{ "record", .initial = &record_initial, .start = record_start, .poll = record_poll, .on_event = record_on_event,
	  .clear = record_clear },
	/* SECURITY: no command starts before pid 1 of the jail is in the cgroup with its limits. */
	{ "hello", .start = engine_hello },
	/*
	 * The supervisor becomes a subreaper after the record is open: writ-signer or another
	 * keeper of the log runs by then, and does not become a child of the supervisor.
	 */
	{ "orphans", .initial = &orphans_initial, .start = orphans_start, .finish = orphans_finish },
	{ "authority", .start = inspection_wait },
	{ "first command", .start = commands_start },
	{ "control", .initial = &control_initial, .init = control_init, .start = control_start, .poll = control_poll, .on_event = control_on_event,
	  .late = true, .deadline = control_deadline, .clear = control_clear },

	/* The end of a command is handled after all events that preceded it. */
	{ "writ-init", .poll = init_messages_poll, .on_event = init_messages_on_event },

	/*
	 * Finishing: first the agents, then bytes that are still to be delivered, then messages and
	 * last entries of the record.
	 */
	{ "agents' end", .finish = spawn_finish },
	{ "deliver", .finish = network_finish_begin },
	{ "output", .finish = terminal_finish },
	{ "mediator's end", .finish = mediation_finish },
	{ "look's end", .finish = look_finish },
	{ "give back", .finish = terminal_release },
	{ "network's end", .finish = network_finish },
	{ "limits reached", .finish = limits_finish },
	{ "denials shown", .finish = denials_finish },
	{ "reason", .finish = ending_notice },
	{ "denied names", .finish = denied_names_finish },
	{ "end", .finish = ending_finish },

	/* Clearing begins here: processes in the jail end before the helpers that serve them. */
	{ "inside", .clear = engine_close_inside },
	/*
	 * Descriptors of files in the jail are closed first: the kernel removes the jail's mounts
	 * when the last one is closed.
	 */
	{ "look closed", .clear = look_clear },
	{ "feed", .clear = denials_clear },
};
/* clang-format on */

_Static_assert(ARRAY_LEN(parts) <= SESSION_PARTS_MAX, "every row has a place in the loop");

int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
		struct writ_err *err)
{
	return session_loop(a, opt, parts, ARRAY_LEN(parts), ret_exit, err);
}

/* Prints what a program compiled against writ.h relies on: sizes, places, numbers. */
#include <stddef.h>
#include <stdio.h>
#include <writ/writ.h>

#define SIZE(type) printf("size %s %zu\n", #type, sizeof(struct type))
#define AT(type, member) printf("at %s.%s %zu\n", #type, #member, offsetof(struct type, member))
#define NUMBER(name) printf("number %s %d\n", #name, (int)(name))

static void structs(void)
{
	SIZE(writ_error);
	AT(writ_error, code);
	AT(writ_error, sys);
	AT(writ_error, text);
	SIZE(writ_options);
	AT(writ_options, home);
	AT(writ_options, config_dir);
	AT(writ_options, state_dir);
	AT(writ_options, environ);
	AT(writ_options, program);
	SIZE(writ_rule);
	AT(writ_rule, kind);
	AT(writ_rule, text);
	SIZE(writ_diagnostic);
	AT(writ_diagnostic, level);
	AT(writ_diagnostic, source);
	AT(writ_diagnostic, line);
	AT(writ_diagnostic, column);
	AT(writ_diagnostic, length);
	AT(writ_diagnostic, text);
	AT(writ_diagnostic, hint);
	SIZE(writ_event);
	AT(writ_event, kind);
	AT(writ_event, json);
	AT(writ_event, json_n);
	SIZE(writ_exit);
	AT(writ_exit, code);
	AT(writ_exit, denials);
	AT(writ_exit, session);
	AT(writ_exit, ended_by);
	AT(writ_exit, why);
}

static void options(void)
{
	SIZE(writ_policy_options);
	AT(writ_policy_options, flags);
	AT(writ_policy_options, tier);
	AT(writ_policy_options, cwd);
	AT(writ_policy_options, workspace);
	AT(writ_policy_options, text);
	AT(writ_policy_options, text_name);
	AT(writ_policy_options, files);
	AT(writ_policy_options, rules);
	AT(writ_policy_options, rules_n);
	AT(writ_policy_options, program);
	AT(writ_policy_options, vars);
	AT(writ_policy_options, diagnostic);
	AT(writ_policy_options, diagnostic_ctx);
	SIZE(writ_run_options);
	AT(writ_run_options, flags);
	AT(writ_run_options, argv);
	AT(writ_run_options, environ);
	AT(writ_run_options, cwd);
	AT(writ_run_options, stdio);
	AT(writ_run_options, input);
	AT(writ_run_options, input_n);
	AT(writ_run_options, output);
	AT(writ_run_options, output_ctx);
	AT(writ_run_options, pool);
}

static void numbers(void)
{
	NUMBER(WRIT_ERROR_SYSTEM);
	NUMBER(WRIT_ERROR_MEMORY);
	NUMBER(WRIT_ERROR_SYNTAX);
	NUMBER(WRIT_ERROR_LIMIT);
	NUMBER(WRIT_ERROR_DENIED);
	NUMBER(WRIT_ERROR_UNENFORCEABLE);
	NUMBER(WRIT_ERROR_BUG);
	NUMBER(WRIT_ERROR_ARGUMENT);
	NUMBER(WRIT_RULE_ALLOW);
	NUMBER(WRIT_RULE_ASK);
	NUMBER(WRIT_RULE_DENY);
	NUMBER(WRIT_RULE_LIMIT);
	NUMBER(WRIT_RULE_SECRET);
	NUMBER(WRIT_RULE_ENV);
	NUMBER(WRIT_RULE_USE);
	NUMBER(WRIT_DIAGNOSTIC_ERROR);
	NUMBER(WRIT_DIAGNOSTIC_WARNING);
	NUMBER(WRIT_DIAGNOSTIC_NOTE);
	NUMBER(WRIT_POLICY_DISCOVER);
	NUMBER(WRIT_POLICY_MISSING_OK);
	NUMBER(WRIT_TIER_BEST);
	NUMBER(WRIT_TIER_A);
	NUMBER(WRIT_TIER_B);
	NUMBER(WRIT_EXPLAIN_ALL);
	NUMBER(WRIT_EXPLAIN_VERBOSE);
	NUMBER(WRIT_RUN_NEUTRAL);
	NUMBER(WRIT_EVENT_OTHER);
	NUMBER(WRIT_EVENT_START);
	NUMBER(WRIT_EVENT_SEALED);
	NUMBER(WRIT_EVENT_EXEC);
	NUMBER(WRIT_EVENT_DENIED);
	NUMBER(WRIT_EVENT_ALLOW);
	NUMBER(WRIT_EVENT_REVOKE);
	NUMBER(WRIT_EVENT_LIMIT);
	NUMBER(WRIT_EVENT_EXITED);
	NUMBER(WRIT_EVENT_FAILED);
	NUMBER(WRIT_EVENT_END);
	NUMBER(WRIT_RESTRICT_KEEP_SOCKETS);
}

int main(void)
{
	structs();
	options();
	numbers();
	return 0;
}

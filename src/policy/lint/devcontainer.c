#include "lint/container_priv.h"

#include "base/banned.h"

static const char *const lifecycle[] = {
	"initializeCommand", "onCreateCommand",	 "updateContentCommand",
	"postCreateCommand", "postStartCommand", "postAttachCommand",
};

/* Settings of editor extensions that let an agent act without approval. */
static const char *const auto_approve[] = {
	"chat.tools.autoApprove",
	"chat.tools.global.autoApprove",
	"claudeCode.allowDangerouslySkipPermissions",
	"chat.agent.autoApprove",
};

static void add_envs(struct check *c, struct container *b, const struct node *env)
{
	for (const struct node *i = lint_members(env); i; i = i->next)
		if (i->kind == NODE_SCALAR)
			lint_container_env(c, b,
					   (struct container_env){
						   .at = i, .name = i->key, .value = i->text });
}

static void add_mounts(struct check *c, struct container *b, const struct node *mounts)
{
	for (const struct node *i = lint_first(mounts); i; i = lint_next(mounts, i)) {
		const struct node *source = lint_get(i, "source");

		if (i->kind == NODE_SCALAR)
			lint_container_mount_spec(c, b, i, i->text);
		else if (source)
			lint_container_mount(
				c, b,
				(struct container_mount){
					.at = source,
					.source = lint_text(source),
					.target = lint_text(lint_get(i, "target")),
					.readonly = lint_true(lint_get(i, "readonly")),
					.volume = lint_is(lint_get(i, "type"), "volume"),
				});
	}
}

static void add_list(struct check *c, struct container_items *items, const struct node *list)
{
	for (const struct node *i = lint_first(list); i; i = lint_next(list, i))
		if (i->kind == NODE_SCALAR)
			lint_container_add(c, items, i, i->text);
}

static void add_run_args(struct check *c, struct container *b, const struct node *args)
{
	struct node_list argv = { 0 };
	size_t i = 0;

	if (!lint_collect(c, &argv, args))
		return;
	/* lint_docker_options() stops at a word that is no option. Skip that word. */
	while (i < argv.n && !c->failed)
		i += lint_docker_options(c, b, argv.v + i, argv.n - i) + 1;
}

/* Checks features, which can bring the engine's socket or require privileges. */
static void check_features(struct check *c, const struct node *features)
{
	for (const struct node *f = lint_members(features); f; f = f->next) {
		if (lint_has(f->key, "docker-outside-of-docker") ||
		    lint_has(f->key, "docker-from-docker"))
			lint_found(c, R_DOCKER_SOCKET, lint_key(c, f), f->key);
		else if (lint_has(f->key, "docker-in-docker"))
			lint_found(c, R_PRIVILEGED, lint_key(c, f), f->key);
	}
}

/* A lifecycle command is a string, a list, or an object of named strings and lists. */
static void check_lifecycle(struct check *c, const struct node *root)
{
	for (size_t i = 0; i < ARRAY_LEN(lifecycle); i++) {
		const struct node *cmd = lint_get(root, lifecycle[i]);

		if (cmd && cmd->kind == NODE_MAP)
			for (const struct node *n = cmd->first; n; n = n->next)
				lint_command(c, n);
		else
			lint_command(c, cmd);
	}
	if (lint_first(lint_get(root, "initializeCommand")))
		lint_found(c, R_TOOLS_OUTSIDE_SANDBOX,
			   lint_key(c, lint_get(root, "initializeCommand")),
			   SV("initializeCommand runs on the host"));
}

static void check_editor(struct check *c, const struct node *root)
{
	const struct node *settings = lint_at(root, "customizations.vscode.settings");

	for (size_t i = 0; i < ARRAY_LEN(auto_approve); i++) {
		const struct node *n = lint_get(settings, auto_approve[i]);

		if (lint_true(n))
			lint_found(c, R_APPROVALS_BYPASSED, n, n->key);
	}
}

static void check_build(struct check *c, const struct node *args)
{
	for (const struct node *i = lint_members(args); i; i = i->next) {
		if (lint_secret_name(i->key) && lint_is_reference(lint_text(i)))
			lint_found(c, R_SECRET_BUILD_ARG, i, i->key);
		else
			lint_env(c, i, i->key, lint_text(i));
	}
}

void lint_devcontainer(struct check *c, const struct node *root)
{
	const struct node *user = lint_get(root, "remoteUser");
	const struct node *image = lint_get(root, "image");
	const struct node *privileged = lint_get(root, "privileged");
	struct container b = { .at = image ? lint_key(c, image) : root };

	user = user ? user : lint_get(root, "containerUser");
	b.partial = lint_get(root, "dockerComposeFile") != NULL;
	b.image = (struct container_item){ image, lint_text(image) };
	b.user = (struct container_item){ user, lint_text(user) };
	b.privileged = lint_true(privileged) ? privileged : NULL;
	add_run_args(c, &b, lint_get(root, "runArgs"));
	add_list(c, &b.caps, lint_get(root, "capAdd"));
	add_list(c, &b.secopts, lint_get(root, "securityOpt"));
	add_mounts(c, &b, lint_get(root, "mounts"));
	add_mounts(c, &b, lint_get(root, "workspaceMount"));
	add_envs(c, &b, lint_get(root, "containerEnv"));
	add_envs(c, &b, lint_get(root, "remoteEnv"));
	lint_container(c, &b);
	check_features(c, lint_get(root, "features"));
	check_lifecycle(c, root);
	check_editor(c, root);
	check_build(c, lint_at(root, "build.args"));
}

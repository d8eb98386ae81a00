#include "locate/locate.h"
#include "rpc/rpc.h"

#include "base/banned.h"

/* A member of a request that is one text, and the place of the text in struct find_input. */
struct text_member {
	const char *name;
	struct sv *to;
};
enum { TEXTS = 11 };

static void text_members(struct find_input *in, struct text_member ret[static TEXTS])
{
	const struct text_member all[TEXTS] = {
		{ "home", &in->where.home },	       { "real_home", &in->where.real_home },
		{ "config", &in->where.config },       { "state", &in->where.state },
		{ "realm", &in->where.realm },	       { "cwd", &in->where.cwd },
		{ "workspace", &in->where.workspace }, { "path", &in->path },
		{ "program", &in->program },	       { "tree", &in->tree },
		{ "agent_socket", &in->agent_socket },
	};

	for (size_t i = 0; i < TEXTS; i++)
		ret[i] = all[i];
}

/* --- writing --- */

static json_t *put_source(const struct source *s)
{
	return json_pack("{s:o,s:o,s:o,s:b}", "name", rpc_bytes(s->name), "dir", rpc_bytes(s->dir),
			 "text", rpc_bytes(s->text), "alone", s->alone);
}

static bool add(json_t *list, json_t *row)
{
	return json_array_append_new(list, row) == 0;
}

static bool put_lists(const struct find_input *in, json_t *to)
{
	json_t *files = json_array(), *args = json_array(), *vars = json_array(),
	       *used = json_array();
	bool fine = json_object_set_new(to, "policies", files) == 0;

	fine = json_object_set_new(to, "rules", args) == 0 && fine;
	fine = json_object_set_new(to, "vars", vars) == 0 && fine;
	fine = json_object_set_new(to, "used", used) == 0 && fine;
	for (size_t i = 0; fine && i < in->files.n; i++)
		fine = add(files, put_source(&in->files.v[i]));
	for (size_t i = 0; fine && i < in->args.n; i++)
		fine = add(args, json_pack("{s:i,s:o}", "kind", (int)in->args.v[i].kind, "source",
					   put_source(&in->args.v[i].src)));
	for (size_t i = 0; fine && i < in->vars.n; i++)
		fine = add(vars, json_pack("{s:o,s:o}", "name", rpc_bytes(in->vars.v[i].name),
					   "value", rpc_bytes(in->vars.v[i].value)));
	for (size_t i = 0; fine && i < in->used.n; i++)
		fine = add(used,
			   json_pack("{s:o,s:o,s:o,s:o}", "name", rpc_bytes(in->used.v[i].name),
				     "dir", rpc_bytes(in->used.v[i].dir), "id",
				     rpc_bytes(in->used.v[i].id), "source",
				     put_source(&in->used.v[i].src)));
	return fine;
}

json_t *locate_input_encode(const struct find_input *from)
{
	struct find_input in = *from;
	struct text_member texts[TEXTS];
	json_t *to = json_pack("{s:b,s:b}", "default_write", in.default_write, "missing_ok",
			       in.missing_ok);
	bool fine = to && put_lists(&in, to);

	text_members(&in, texts);
	for (size_t i = 0; fine && i < TEXTS; i++)
		fine = json_object_set_new(to, texts[i].name, rpc_bytes(*texts[i].to)) == 0;
	if (fine && in.has_narrow)
		fine = json_object_set_new(to, "narrow", put_source(&in.narrow)) == 0;
	if (fine)
		return to;
	json_decref(to);
	return NULL;
}

/* --- reading --- */

static bool get_text(struct arena *a, const json_t *v, const char *name, struct sv *ret)
{
	return rpc_get_bytes(a, json_object_get(v, name), ret);
}

static bool get_source(struct arena *a, const json_t *v, struct source *ret)
{
	return get_text(a, v, "name", &ret->name) && get_text(a, v, "dir", &ret->dir) &&
	       get_text(a, v, "text", &ret->text) && rpc_get_flag(v, "alone", &ret->alone);
}

static bool get_lists(struct arena *a, const json_t *from, struct find_input *in)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(from, "policies"), i, v)
	{
		struct source *s = vec_push(a, &in->files);

		if (!s || !get_source(a, v, s))
			return false;
	}
	json_array_foreach(json_object_get(from, "rules"), i, v)
	{
		struct policy_arg *arg = vec_push(a, &in->args);
		uint64_t kind;

		if (!arg || !rpc_get_number(v, "kind", ARG_USE, &kind) ||
		    !get_source(a, json_object_get(v, "source"), &arg->src))
			return false;
		arg->kind = (enum policy_arg_kind)kind;
	}
	json_array_foreach(json_object_get(from, "vars"), i, v)
	{
		struct policy_var *var = vec_push(a, &in->vars);

		if (!var || !get_text(a, v, "name", &var->name) ||
		    !get_text(a, v, "value", &var->value))
			return false;
	}
	json_array_foreach(json_object_get(from, "used"), i, v)
	{
		struct find_used *used = vec_push(a, &in->used);

		if (!used || !get_text(a, v, "name", &used->name) ||
		    !get_text(a, v, "dir", &used->dir) || !get_text(a, v, "id", &used->id) ||
		    !get_source(a, json_object_get(v, "source"), &used->src))
			return false;
	}
	return true;
}

bool locate_input_decode(struct arena *a, const json_t *from, struct find_input *ret)
{
	struct find_input in = { 0 };
	struct text_member texts[TEXTS];
	const json_t *narrow = json_object_get(from, "narrow");

	text_members(&in, texts);
	for (size_t i = 0; i < TEXTS; i++)
		if (!get_text(a, from, texts[i].name, texts[i].to))
			return false;
	in.agent = SV("");
	in.has_narrow = narrow;
	if (!rpc_get_flag(from, "default_write", &in.default_write) ||
	    !rpc_get_flag(from, "missing_ok", &in.missing_ok) ||
	    (narrow && !get_source(a, narrow, &in.narrow)) || !get_lists(a, from, &in))
		return false;
	*ret = in;
	return true;
}

#include "lang/ast_priv.h"

#include "base/banned.h"

void lang_stmt_print(const struct stmt *s, struct buf *b)
{
	for (size_t i = 0; i < s->n; i++) {
		if (i)
			buf_ch(b, ' ');
		buf_sv(b, s->w[i].raw);
	}
}

int policy_print(const struct source *src, struct diags *d, struct buf *b, struct writ_err *err)
{
	struct ast ast = { 0 };
	int r = ast_parse(d, src, &ast, err);

	if (r < 0)
		return r;
	if (d->errors)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "policy has errors");
	for (size_t i = 0; i < ast.stmts.n; i++) {
		if (ast.stmts.v[i].inner)
			buf_str(b, "    ");
		lang_stmt_print(&ast.stmts.v[i], b);
		buf_ch(b, '\n');
	}
	return buf_check(b, err);
}

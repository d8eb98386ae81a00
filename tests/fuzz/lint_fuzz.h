/*
 * lint_fuzz.h - one format of lint/, whatever bytes: findings that point into
 * the file, belong to the format, and print without control characters.
 */
#ifndef WRIT_TESTS_LINT_FUZZ_H
#define WRIT_TESTS_LINT_FUZZ_H

#include <string.h>

#include "fuzz.h"
#include "lint/lint.h"

static uint32_t lines_in(struct sv text)
{
	uint32_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	return n;
}

static void check_findings(const struct lint_file *file)
{
	const uint32_t lines = lines_in(file->text);

	for (size_t i = 0; i < file->n; i++) {
		const struct lint_finding *f = &file->findings[i];

		must(f->line >= 1 && f->line <= lines && f->column >= 1 && f->width >= 1);
		must(lint_applies(f->rule, file->format));
		must(!i || f[-1].line <= f->line);
	}
}

static void check_printed(const struct lint_file *file)
{
	struct buf b = BUF_INIT(64 << 20);

	lint_print_text(file, &b);
	for (size_t i = 0; i < b.n; i++)
		must((uint8_t)b.p[i] >= 0x20 || b.p[i] == '\n');
	buf_clear(&b);
	if (file->text.n % 16) /* the long forms cost more than the reading */
		return;
	lint_print_json(file, 1, &b);
	buf_clear(&b);
	lint_print_sarif(file, 1, &b);
	must(!b.failed);
	buf_clear(&b);
}

static int lint_fuzz(enum lint_format format, const uint8_t *data, size_t size)
{
	const struct sv text = fuzz_bytes(data, size);
	struct arena arena = ARENA_INIT(512 << 20);
	struct lint_findings found = { 0 };
	struct writ_err err = { 0 };
	int r = lint_run(&arena, format, SV("fuzz"), text, &found, &err);
	const struct lint_file file = { .name = SV("fuzz"), .text = text, .format = format,
					.findings = found.v, .n = found.n };

	must(r == 0 || (r < 0 && found.n == 0 && err.what[0]));
	check_findings(&file);
	check_printed(&file);
	(void)lint_detect(SV("fuzz"), text);
	arena_clear(&arena);
	return 0;
}

#endif

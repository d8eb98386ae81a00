#include "loop/loop.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/banned.h"

/* Drops memory pages of the writ program: most of its code and tables are used only to start. */
static int drop_code(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size, (void)ctx;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t from = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		const uintptr_t to = info->dlpi_addr + p->p_vaddr + p->p_memsz;

		/* Read-only pages are safe to drop: the kernel reads them from the file again. */
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 1; /* stop: dl_iterate_phdr() reports the program itself first */
}

/*
 * Drops pages of the stack that deeper calls have left. SECURITY: only on the stack of the main
 * thread: no other memory is mapped below that stack within this distance.
 */
static void drop_frames(void)
{
	enum { NEAR = 16 << 10, FAR = 512 << 10 };
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(page - 1);

	if (gettid() == getpid())
		(void)madvise((void *)(here - FAR), FAR - NEAR, MADV_DONTNEED);
}

void session_trim_memory(void)
{
	(void)malloc_trim(0);
	drop_frames();
	(void)dl_iterate_phdr(drop_code, NULL);
}

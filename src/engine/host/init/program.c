#include "init/init.h"

#include <asm/stat.h>
#include <linux/memfd.h>
#include <linux/mman.h>

#include "base/banned.h"

/*
 * Maps a program or a command of at least @least bytes. The caller owns the mapping and still owns
 * the descriptor. SECURITY: accepts only a sealed memfd, so that no process can change the program
 * between the check and its use.
 */
int init_program_map(int fd, uint32_t least, const void **ret, uint32_t *ret_size)
{
	const long want = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct stat st;
	long r = sys(fcntl, fd, F_GET_SEALS, 0);

	if (r < 0 || (r & want) != want)
		return -EINVAL;
	r = sys(fstat, fd, &st);
	if (r < 0)
		return (int)r;
	if (st.st_size < (long)least || st.st_size > JAIL_MAX)
		return -EINVAL;
	r = sys(mmap, 0, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (r < 0 && r > -4096)
		return (int)r;
	*ret = (const void *)r;
	*ret_size = (uint32_t)st.st_size;
	return 0;
}

static bool table_fits(struct jail_span s, uint32_t size, uint32_t element, uint32_t align)
{
	return s.n == 0 || (s.at % align == 0 && s.at <= size && s.n <= (size - s.at) / element);
}

/* True if the string is inside the program, contains no NUL and is followed by a NUL. */
static bool string_fits(const void *base, uint32_t size, struct jail_span s)
{
	const char *p = (const char *)base + s.at;

	if (s.at >= size || s.n >= size - s.at || p[s.n] != 0)
		return false;
	for (uint32_t i = 0; i < s.n; i++)
		if (p[i] == 0)
			return false;
	return true;
}

static bool bytes_fit(uint32_t size, struct jail_span s)
{
	return s.at <= size && s.n <= size - s.at;
}

static bool strings_fit(const void *base, uint32_t size, struct jail_span list)
{
	const struct jail_span *v = span_at(base, list);

	if (!table_fits(list, size, sizeof(*v), _Alignof(struct jail_span)))
		return false;
	for (uint32_t i = 0; i < list.n; i++)
		if (!string_fits(base, size, v[i]))
			return false;
	return true;
}

static bool mounts_fit(const struct jail_head *p, uint32_t size)
{
	const struct jail_mount *m = span_at(p, p->mounts);

	if (!table_fits(p->mounts, size, sizeof(*m), _Alignof(struct jail_mount)))
		return false;
	for (uint32_t i = 0; i < p->mounts.n; i++) {
		if (m[i].op == JAIL_OP_NONE || m[i].op >= JAIL_OP_COUNT ||
		    !string_fits(p, size, m[i].dst) || m[i].dst.n < 2 ||
		    *(const char *)span_at(p, m[i].dst) != '/')
			return false;
		if (m[i].op == JAIL_OP_FILE ? !bytes_fit(size, m[i].src)
					    : !string_fits(p, size, m[i].src))
			return false;
	}
	return true;
}

static bool probes_fit(const struct jail_head *p, uint32_t size)
{
	const struct jail_probe *v = span_at(p, p->probes);

	if (p->probes.n > JAIL_PROBES_MAX ||
	    !table_fits(p->probes, size, sizeof(*v), _Alignof(struct jail_probe)))
		return false;
	for (uint32_t i = 0; i < p->probes.n; i++)
		if (v[i].op == JAIL_PROBE_NONE || v[i].op >= JAIL_PROBE_COUNT ||
		    !string_fits(p, size, v[i].path))
			return false;
	return true;
}

/*
 * SECURITY: every table and string must be inside the program before pid 1 uses any of them. The
 * sealed memfd comes from the supervisor, but pid 1 has rights in its namespaces and must not read
 * beyond the program.
 */
int init_program_check(const struct jail_head *p, uint32_t size)
{
	const struct jail_rule *rules = span_at(p, p->rules);

	if (p->magic != JAIL_MAGIC || p->version != JAIL_VERSION || p->size != size)
		return -EINVAL;
	if (!mounts_fit(p, size) || !string_fits(p, size, p->hostname) ||
	    !table_fits(p->rules, size, sizeof(*rules), _Alignof(struct jail_rule)) ||
	    !table_fits(p->rlimits, size, sizeof(struct jail_rlimit),
			_Alignof(struct jail_rlimit)) ||
	    !table_fits(p->listens, size, sizeof(struct jail_listen),
			_Alignof(struct jail_listen)) ||
	    !table_fits(p->base, size, sizeof(struct jail_instruction), 4) ||
	    !table_fits(p->traps, size, sizeof(struct jail_instruction), 4) ||
	    !table_fits(p->keeper, size, sizeof(struct jail_instruction), 4))
		return -EINVAL;
	if (!probes_fit(p, size))
		return -EINVAL;
	if (p->base.n == 0 || p->base.n > 4096 || p->traps.n > 4096 || p->keeper.n > 4096)
		return -EINVAL;
	for (uint32_t i = 0; i < p->rules.n; i++)
		if (!string_fits(p, size, rules[i].path) || rules[i].layer > p->layers)
			return -EINVAL;
	return p->layers > JAIL_LAYERS_MAX ? -EINVAL : 0;
}

int init_command_check(const struct jail_command *c, uint32_t size)
{
	if (c->magic != JAIL_MAGIC || c->version != JAIL_VERSION || c->size != size)
		return -EINVAL;
	if (c->args.n == 0 || !strings_fit(c, size, c->args) || !strings_fit(c, size, c->env) ||
	    !string_fits(c, size, c->path) || !string_fits(c, size, c->cwd) ||
	    !string_fits(c, size, c->program))
		return -EINVAL;
	return 0;
}

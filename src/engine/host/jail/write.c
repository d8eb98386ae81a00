#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

struct jail_span jail_put(struct jail_writer *w, struct sv s)
{
	const struct jail_span span = { (uint32_t)w->pool.n, (uint32_t)s.n };

	buf_sv(&w->pool, s);
	buf_ch(&w->pool, 0);
	return span;
}

bool jail_put_mount(struct jail_writer *w, enum jail_op op, struct sv src, struct sv dst,
		    uint64_t arg, unsigned flags)
{
	struct jail_mount *m = vec_push(w->arena, &w->mounts);

	if (!m)
		return false;
	*m = (struct jail_mount){ .op = (uint16_t)op,
				  .flags = (uint16_t)flags,
				  .src = jail_put(w, src),
				  .dst = jail_put(w, dst),
				  .arg = arg };
	return true;
}

bool jail_put_rule(struct jail_writer *w, struct sv path, uint64_t access, unsigned flags)
{
	struct jail_rule *r = vec_push(w->arena, &w->rules);

	if (!r)
		return false;
	*r = (struct jail_rule){ .path = jail_put(w, path), .access = access, .flags = flags };
	return true;
}

bool jail_put_rlimit(struct jail_writer *w, unsigned resource, uint64_t value)
{
	struct jail_rlimit *r = vec_push(w->arena, &w->rlimits);

	if (r)
		*r = (struct jail_rlimit){ .resource = resource, .value = value };
	return r != NULL;
}

bool jail_put_listen(struct jail_writer *w, const struct jail_listen *l)
{
	struct jail_listen *to = vec_push(w->arena, &w->listens);

	if (to)
		*to = *l;
	return to != NULL;
}

bool jail_put_probe(struct jail_writer *w, const struct jail_probe *p, struct sv path)
{
	struct jail_probe *to = vec_push(w->arena, &w->probes);

	if (!to)
		return false;
	*to = *p;
	to->path = jail_put(w, path);
	return true;
}

bool jail_put_arg(struct jail_writer *w, struct sv s)
{
	struct jail_span *a = vec_push(w->arena, &w->args);

	if (a)
		*a = jail_put(w, s);
	return a != NULL;
}

bool jail_put_env(struct jail_writer *w, struct sv name, struct sv value)
{
	struct jail_span *e = vec_push(w->arena, &w->env);

	if (!e)
		return false;
	e->at = (uint32_t)w->pool.n;
	buf_sv(&w->pool, name);
	buf_ch(&w->pool, '=');
	buf_sv(&w->pool, value);
	e->n = (uint32_t)w->pool.n - e->at;
	buf_ch(&w->pool, 0);
	return true;
}

/* Appends a table to @b, aligned to 8 bytes, which suits every element type. */
static struct jail_span add_table(struct buf *b, const void *v, size_t n, size_t size)
{
	struct jail_span s;

	buf_fill(b, 0, (8 - b->n % 8) % 8);
	s = (struct jail_span){ (uint32_t)b->n, (uint32_t)n };
	if (n)
		buf_add(b, v, n * size);
	return s;
}

static struct jail_span add_filter(struct buf *b, struct jail_filter f)
{
	return add_table(b, f.v, f.n, sizeof(struct jail_instruction));
}

static void move_span(struct jail_span *s, uint32_t by)
{
	s->at += by;
}

static int seal(const struct buf *b, const char *name, int *ret_fd, struct writ_err *err)
{
	const unsigned seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	scoped_fd fd = -1;
	int r;

	/*
	 * Pass MFD_NOEXEC_SEAL, so that a kernel with vm.memfd_noexec accepts the memfd: no process
	 * executes it.
	 */
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | 8u /* MFD_NOEXEC_SEAL */);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	r = fd_write_all(fd, buf_view(b), err);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "seal %s", name);
	*ret_fd = fd_take(&fd);
	return 0;
}

/*
 * Seals the bytes @b of a program or command. @head is the completed head of @size bytes, which
 * replaces the incomplete head at the start of @b.
 */
static int seal_with_head(const struct jail_writer *w, const struct buf *b, const void *head,
			  size_t size, const char *name, int *ret_fd, struct writ_err *err)
{
	int r = buf_check(b, err);

	if (r == 0)
		r = buf_check(&w->pool, err);
	if (r < 0)
		return r;
	memcpy(b->p, head, size);
	return seal(b, name, ret_fd, err);
}

int jail_seal_program(struct jail_writer *w, struct jail_head *head,
		      const struct jail_filters *filters, int *ret_fd, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(JAIL_MAX);
	const uint32_t strings = (uint32_t)sizeof(*head);

	for (size_t i = 0; i < w->mounts.n; i++) {
		move_span(&w->mounts.v[i].src, strings);
		move_span(&w->mounts.v[i].dst, strings);
	}
	for (size_t i = 0; i < w->rules.n; i++)
		move_span(&w->rules.v[i].path, strings);
	for (size_t i = 0; i < w->probes.n; i++)
		move_span(&w->probes.v[i].path, strings);
	move_span(&head->hostname, strings);
	buf_add(&b, head, sizeof(*head));
	buf_add(&b, w->pool.p, w->pool.n);
	head->magic = JAIL_MAGIC;
	head->version = JAIL_VERSION;
	head->mounts = add_table(&b, w->mounts.v, w->mounts.n, sizeof(w->mounts.v[0]));
	head->rules = add_table(&b, w->rules.v, w->rules.n, sizeof(w->rules.v[0]));
	head->rlimits = add_table(&b, w->rlimits.v, w->rlimits.n, sizeof(w->rlimits.v[0]));
	head->listens = add_table(&b, w->listens.v, w->listens.n, sizeof(w->listens.v[0]));
	head->probes = add_table(&b, w->probes.v, w->probes.n, sizeof(w->probes.v[0]));
	head->base = add_filter(&b, filters->base);
	head->traps = add_filter(&b, filters->traps);
	head->keeper = add_filter(&b, filters->keeper);
	head->size = (uint32_t)b.n;
	return seal_with_head(w, &b, head, sizeof(*head), "writ-jail", ret_fd, err);
}

int jail_seal_command(struct jail_writer *w, struct jail_command *c, int *ret_fd,
		      struct writ_err *err)
{
	scoped_buf b = BUF_INIT(JAIL_MAX);
	const uint32_t strings = (uint32_t)sizeof(*c);

	for (size_t i = 0; i < w->args.n; i++)
		move_span(&w->args.v[i], strings);
	for (size_t i = 0; i < w->env.n; i++)
		move_span(&w->env.v[i], strings);
	move_span(&c->path, strings);
	move_span(&c->cwd, strings);
	move_span(&c->program, strings);
	buf_add(&b, c, sizeof(*c));
	buf_add(&b, w->pool.p, w->pool.n);
	c->magic = JAIL_MAGIC;
	c->version = JAIL_VERSION;
	c->args = add_table(&b, w->args.v, w->args.n, sizeof(w->args.v[0]));
	c->env = add_table(&b, w->env.v, w->env.n, sizeof(w->env.v[0]));
	c->size = (uint32_t)b.n;
	return seal_with_head(w, &b, c, sizeof(*c), "writ-command", ret_fd, err);
}

void jail_writer_clear(struct jail_writer *w)
{
	buf_clear(&w->pool);
}

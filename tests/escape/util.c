#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void fmt(char *buf, size_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	const int n = vsnprintf(buf, size, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size) {
		static const char msg[] = "a path of the scene is too long\n";
		(void)!write(2, msg, sizeof(msg) - 1);
		_exit(99);
	}
}

const char *path(const char *format, ...)
{
	static char ring[256][PATH_SIZE];
	static unsigned next;
	char *buf = ring[next++ % LENGTH(ring)];
	va_list ap;

	va_start(ap, format);
	const int n = vsnprintf(buf, PATH_SIZE, format, ap);
	va_end(ap);
	if (n < 0 || n >= PATH_SIZE)
		_exit(99);
	return buf;
}

/* One write per line, so that lines of several processes do not mix. */
void say(const struct ctx *c, const char *format, ...)
{
	char line[2048];
	va_list ap;
	int n = snprintf(line, sizeof(line), "+%s ", c->row->id);

	va_start(ap, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, ap);
	va_end(ap);
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	(void)!write(1, line, (size_t)n);
}

void say_bytes(const struct ctx *c, const char *bytes, size_t n)
{
	char clean[1024];
	size_t used = 0;

	for (size_t i = 0; i < n && used < sizeof(clean) - 1; i++)
		clean[used++] = bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.';
	clean[used] = 0;
	say(c, "%s", clean);
}

int rc(long r)
{
	return r < 0 ? -errno : 0;
}

int write_file(const char *name, const char *text)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	const int r = rc(write(fd, text, strlen(text)));
	close(fd);
	return r;
}

int read_text(const char *name, char *buf, size_t size)
{
	const int fd = open(name, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	buf[0] = 0;
	if (fd < 0)
		return -errno;
	while (used < size - 1 && (n = read(fd, buf + used, size - 1 - used)) > 0)
		used += (size_t)n;
	const int err = n < 0 ? -errno : 0;
	buf[used] = 0;
	close(fd);
	return err ? err : (int)used;
}

int say_fd(const struct ctx *c, int fd)
{
	char buf[512];
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));
	const int r = rc(n);

	if (n > 0)
		say_bytes(c, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	return r;
}

int say_file(const struct ctx *c, const char *name)
{
	return say_fd(c, open(name, O_RDONLY | O_CLOEXEC));
}

int put(int fd)
{
	if (fd < 0)
		return -errno;
	const int r = rc(write(fd, "escaped\n", 8));
	close(fd);
	return r;
}

long number_of(const char *text)
{
	return text ? strtol(text, NULL, 0) : 0;
}

/* The nearest process that is surely not part of the sandbox when run bare. */
pid_t parent_of(const struct ctx *c)
{
	if (c->control)
		return getpid();
	const long pid = target_num(c, "runner");
	return pid > 0 ? (pid_t)pid : getppid();
}

/* The scene's telephone book: lines of "ID key value" in work/targets. */
const char *target(const struct ctx *c, const char *key)
{
	static char value[256];
	char id[64];
	char name[64];
	FILE *f = fopen(path("%s/targets", c->root), "re");

	value[0] = 0;
	while (f && fscanf(f, "%63s %63s %255s", id, name, value) == 3) {
		if ((!strcmp(id, c->row->id) || !strcmp(id, "*")) && !strcmp(name, key)) {
			(void)fclose(f);
			return value;
		}
	}
	if (f)
		(void)fclose(f);
	return NULL;
}

long target_num(const struct ctx *c, const char *key)
{
	return number_of(target(c, key));
}

void nap(int milliseconds)
{
	const struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000L };

	(void)nanosleep(&t, NULL);
}

int wait_for(pid_t pid)
{
	int status = 0;

	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -EIO;
	return -WEXITSTATUS(status);
}

/* For acts that change the caller for good: namespaces, root, credentials. */
int in_child(struct ctx *c, int (*fn)(struct ctx *c))
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(-fn(c) & 0xff);
	return wait_for(pid);
}

/* A user namespace in which we are root, and what else @flags ask for. */
int enter_userns(int flags)
{
	const unsigned uid = geteuid();
	const unsigned gid = getegid();

	if (unshare(CLONE_NEWUSER | flags) < 0)
		return -errno;
	(void)write_file("/proc/self/setgroups", "deny");
	int r = write_file("/proc/self/uid_map", path("0 %u 1", uid));
	if (r >= 0)
		r = write_file("/proc/self/gid_map", path("0 %u 1", gid));
	return r < 0 ? r : 0;
}

int remove_tree(const char *name)
{
	DIR *d = NULL;

	if (unlink(name) == 0 || errno == ENOENT)
		return 0;
	(void)chmod(name, 0700);
	d = opendir(name);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char sub[PATH_SIZE];

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		fmt(sub, sizeof(sub), "%s/%s", name, e->d_name);
		(void)remove_tree(sub);
	}
	if (d)
		(void)closedir(d);
	return rc(rmdir(name));
}

#include "tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "lint/lint.h"

enum { ARENA = 256 * 1024 * 1024, FILE_MAX = 8 * 1024 * 1024 };

/* What one run gave; everything lives in the arena. */
struct result {
	struct arena arena;
	struct lint_findings found;
	struct writ_err err;
	int r;
};

static void lint_text(struct result *res, enum lint_format format, struct sv text)
{
	*res = (struct result){ .arena = ARENA_INIT(ARENA) };
	res->r = lint_run(&res->arena, format, SV("x"), text, &res->found, &res->err);
}

static size_t count(const struct result *res, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < res->found.n; i++)
		n += !strcmp(res->found.v[i].rule->id, id);
	return n;
}

/* Is there a finding of @id on @line? */
static bool found_at(const struct result *res, const char *id, uint32_t line)
{
	for (size_t i = 0; i < res->found.n; i++)
		if (!strcmp(res->found.v[i].rule->id, id) && res->found.v[i].line == line)
			return true;
	return false;
}

/* Expects @n findings of @id in @text. */
static void expect(enum lint_format format, const char *text, const char *id, size_t n,
		   const char *name)
{
	struct result res;

	lint_text(&res, format, sv_from(text));
	if (!ok(res.r == 0 && count(&res, id) == n, "%s", name)) {
		tap_note("r=%d %s, %zu of %s", res.r, res.err.what, count(&res, id), id);
		for (size_t i = 0; i < res.found.n; i++)
			tap_note("%u:%u %s " SV_FMT, res.found.v[i].line, res.found.v[i].column,
				 res.found.v[i].rule->id, SV_ARG(res.found.v[i].where));
	}
	arena_clear(&res.arena);
}

static void expect_code(enum lint_format format, struct sv text, int code, const char *name)
{
	struct result res;

	lint_text(&res, format, text);
	if (!ok(res.r == code && res.found.n == 0, "%s", name))
		tap_note("r=%d %s", res.r, res.err.what);
	arena_clear(&res.arena);
}

/* Fixtures. */

static const char *const extensions[] = {
	[LINT_UNKNOWN] = "",
	[LINT_DOCKER] = "sh",
	[LINT_COMPOSE] = "yml",
	[LINT_DEVCONTAINER] = "json",
	[LINT_DOCKERFILE] = "dockerfile",
	[LINT_KUBE] = "yaml",
	[LINT_CLAUDE] = "json",
	[LINT_SRT] = "json",
	[LINT_MCP] = "json",
};

static const char *source_root(void)
{
	const char *root = getenv("SRC");

	return root ? root : ".";
}

static bool read_source(const char *path, struct buf *b)
{
	char full[1024];
	struct writ_err err = { 0 };

	(void)snprintf(full, sizeof(full), "%s/%s", source_root(), path);
	return fd_read_file(full, b, &err) == 0;
}

/* The lines that lines.txt names for this pair, as "3,7"; empty if none. */
static struct sv expected_lines(struct sv table, const char *format, const char *id)
{
	while (table.n) {
		struct sv line = sv_cut(&table, '\n');
		const struct sv f = sv_cut(&line, ' '), r = sv_cut(&line, ' ');

		if (sv_is(f, format) && sv_is(r, id))
			return line;
	}
	return SV("");
}

static bool lists_line(struct sv lines, uint32_t line)
{
	while (lines.n) {
		uint64_t v = 0;

		if (sv_to_u64(sv_cut(&lines, ','), UINT32_MAX, &v) && v == line)
			return true;
	}
	return false;
}

/* Every expected line has the rule, and no other line has it. */
static bool lines_match(const struct result *res, const char *id, struct sv lines)
{
	struct sv rest = lines;

	for (size_t i = 0; i < res->found.n; i++)
		if (!strcmp(res->found.v[i].rule->id, id) &&
		    !lists_line(lines, res->found.v[i].line))
			return false;
	while (rest.n) {
		uint64_t v = 0;

		if (!sv_to_u64(sv_cut(&rest, ','), UINT32_MAX, &v) ||
		    !found_at(res, id, (uint32_t)v))
			return false;
	}
	return lines.n > 0;
}

static void check_fixture(enum lint_format f, const struct lint_rule *rule, const char *kind,
			  struct sv lines)
{
	const bool bad = !strcmp(kind, "bad");
	scoped_buf text = BUF_INIT(FILE_MAX);
	struct result res;
	char path[512];
	bool pass;

	(void)snprintf(path, sizeof(path), "tests/lint/%s/%s-%s.%s.%s", lint_format_name(f),
		       rule->id, rule->name, kind, extensions[f]);
	if (!ok(read_source(path, &text), "%s exists", path))
		return;
	lint_text(&res, f, buf_view(&text));
	pass = res.r == 0 &&
	       (bad ? lines_match(&res, rule->id, lines) : count(&res, rule->id) == 0);
	if (!ok(pass, "%s %s %s", lint_format_name(f), rule->name, kind)) {
		tap_note("r=%d %s; want lines " SV_FMT, res.r, res.err.what, SV_ARG(lines));
		for (size_t i = 0; i < res.found.n; i++)
			if (res.found.v[i].rule == rule)
				tap_note("found at line %u", res.found.v[i].line);
	}
	arena_clear(&res.arena);
	ok(lint_detect(SV("unnamed"), buf_view(&text)) == f || f == LINT_DOCKERFILE,
	   "%s is recognised by its content", path);
}

static void test_fixtures(void)
{
	scoped_buf table = BUF_INIT(FILE_MAX);
	const struct lint_rule *rule;

	if (!ok(read_source("tests/lint/lines.txt", &table), "table of expected lines"))
		return;
	for (size_t i = 0; (rule = lint_rule_at(i)) != NULL; i++)
		for (unsigned f = LINT_UNKNOWN + 1; f < LINT_FORMAT_COUNT; f++) {
			const struct sv lines = expected_lines(
				buf_view(&table), lint_format_name((enum lint_format)f), rule->id);

			if (!lint_applies(rule, (enum lint_format)f)) {
				if (lines.n)
					ok(false, "%s does not apply to this format", rule->id);
				continue;
			}
			check_fixture((enum lint_format)f, rule, "bad", lines);
			check_fixture((enum lint_format)f, rule, "good", SV(""));
		}
}

/* No file lies around that no applicable pair asks for. */
static void test_no_strays(void)
{
	for (unsigned f = LINT_UNKNOWN + 1; f < LINT_FORMAT_COUNT; f++) {
		size_t files = 0, pairs = 0;
		const struct lint_rule *rule;
		const struct dirent *e;
		char path[512];
		DIR *dir;

		(void)snprintf(path, sizeof(path), "%s/tests/lint/%s", source_root(),
			       lint_format_name((enum lint_format)f));
		dir = opendir(path);
		if (!ok(dir != NULL, "%s", path))
			continue;
		while ((e = readdir(dir)))
			files += e->d_name[0] != '.';
		(void)closedir(dir);
		for (size_t i = 0; (rule = lint_rule_at(i)) != NULL; i++)
			pairs += lint_applies(rule, (enum lint_format)f);
		ok(files == 2 * pairs, "%s: %zu files for %zu pairs", path, files, pairs);
	}
}

/* Docker command lines. */

static void test_docker(void)
{
	const enum lint_format f = LINT_DOCKER;
	struct result res;

	expect(f, "docker run -itv /:/h img:1\n", "W102", 1, "a value at the end of a cluster");
	expect(f, "docker run -v/:/h img:1\n", "W102", 1, "a value joined to its letter");
	expect(f, "docker run img:1 --privileged\n", "W101", 0, "options end at the image");
	expect(f, "docker run --name --privileged img:1\n", "W101", 0, "a value is not an option");
	expect(f, "docker run --unknown x --privileged img:1\n", "W101", 1,
	       "an unknown option takes a value");
	expect(f, "docker --context x container run --privileged img:1\n", "W101", 1,
	       "options of the engine come before run");
	expect(f, "docker ps; docker build --privileged .\n", "W101", 0,
	       "other verbs are left alone");
	expect(f, "# docker run --privileged img:1\n", "W101", 0, "a comment is not a command");
	expect(f, "echo x # docker run --privileged img\n", "W101", 0, "nor is one at the end");
	expect(f, "run:\n\t@docker run --privileged img:1\n", "W101", 1, "a Makefile recipe");
	expect(f, "\t$(DOCKER) run --privileged img:1\n", "W101", 1,
	       "the engine as a make variable");
	expect(f, "id=$(docker run -d --privileged img:1)\n", "W101", 1, "inside a substitution");
	expect(f, "sh -c \"docker run --privileged img:1\"\n", "W101", 1, "inside quotes");
	expect(f, "Don't: `podman run --pid host img:1` isn't safe\n", "W108", 1, "inside prose");
	expect(f, "docker run '--privileged' img:1\n", "W101", 1, "a quoted option");
	expect(f, "docker run \"-v\" \"/\":/h img:1\n", "W102", 1, "half-quoted words are joined");
	expect(f, "mydocker run --privileged img:1\n", "W101", 0,
	       "a longer word is another program");
	expect(f, "docker run --net host img:1 && docker run --pid=host img:1\n", "W108", 1,
	       "two commands on a line");
	expect(f, "sh -c \"docker run --name x\" --privileged img\n", "W101", 0,
	       "a command ends with the quote around it");
	expect(f, "docker run -d --name agent -v w:/w agent:1\n", "W132", 1, "detached and kept");
	expect(f, "docker run -d --rm --name agent -v w:/w agent:1\n", "W132", 0,
	       "removed at its end");
	expect(f, "docker run -v id_rsa:/x img:1\n", "W163", 0, "the name of a volume is no path");
	expect(f, "docker run $OPTS --privileged img:1\n", "W101", 1,
	       "options in a variable come first");
	expect(f, "docker run \"$@\" img\n", "W181", 1, "arguments in place of options");
	expect(f, "docker run $IMAGE --privileged\n", "W101", 0,
	       "an image in a variable ends options");
	expect(f, "docker run --pids-limit -1 -m 1g --cpus 1 img:1\n", "W171", 1,
	       "an unlimited limit is none");
	lint_text(&res, f, SV("x\ndocker run \\\n  --rm \\\n  --privileged \\\n  img:1\n"));
	ok(found_at(&res, "W101", 4), "the line inside a continued command");
	arena_clear(&res.arena);
	lint_text(&res, f, SV("docker run -e \xc3\xa4=\xc3\xb6 --privileged img:1\n"));
	ok(res.found.n && res.found.v[0].rule && found_at(&res, "W101", 1),
	   "UTF-8 before a finding");
	for (size_t i = 0; i < res.found.n; i++)
		if (!strcmp(res.found.v[i].rule->id, "W101"))
			ok(res.found.v[i].column == 19 && res.found.v[i].width == 12,
			   "columns count characters");
	arena_clear(&res.arena);
}

/* YAML: anchors, merge keys, extends. */

static void test_compose(void)
{
	const enum lint_format f = LINT_COMPOSE;
	struct result res;

	expect(f,
	       "x-a: &a\n  privileged: true\nservices:\n  one:\n    <<: *a\n    image: i:1\n"
	       "  two:\n    <<: [*a]\n    privileged: false\n",
	       "W101", 1, "a merge key brings a setting, and an own key wins");
	expect(f,
	       "services:\n  base:\n    privileged: true\n  child:\n    extends: {service: base}\n"
	       "    image: i:1\n",
	       "W101", 1, "one place to fix is one finding");
	lint_text(&res, f,
		  SV("services:\n  child:\n    extends: base\n  base:\n    image: i:1\n"
		     "    cap_add: [SYS_ADMIN]\n"));
	ok(found_at(&res, "W113", 6), "a setting of the extended service");
	arena_clear(&res.arena);
	expect(f,
	       "services:\n  base: {security_opt: [no-new-privileges]}\n  child: {extends: base}\n",
	       "W118", 0, "a protection is inherited too");
	expect(f,
	       "x: &e {A_TOKEN: correct-horse}\nservices:\n  a:\n    environment:\n      <<: *e\n"
	       "      A_TOKEN: ${A_TOKEN}\n",
	       "W164", 0, "a merged key that is overridden is gone");
	expect(f, "services:\n  a: {extends: b}\n  b: {extends: a, privileged: true}\n", "W101", 1,
	       "extends in a circle ends");
	expect(f, "services:\n  a:\n    privileged: \"${PRIV:-true}\"\n", "W101", 1,
	       "a default of a variable counts");
	expect(f, "services:\n  a:\n    privileged: !reset true\n", "W101", 0,
	       "a reset is no value");
	expect(f,
	       "services:\n  a:\n    volumes: [v:/x]\nvolumes:\n  v:\n    driver_opts:\n"
	       "      type: none\n      o: bind\n      device: /\n",
	       "W102", 1, "a named volume that is a bind mount");
	expect(f,
	       "services:\n  db:\n    image: postgres:16\n    container_name: db\n"
	       "    restart: always\n    volumes: [data:/var/lib/postgresql]\n",
	       "W132", 0, "a database may keep its volume");
	expect(f,
	       "services:\n  agent:\n    image: i:1\n    cap_drop: [ALL]\n    network_mode: none\n"
	       "  dind:\n    privileged: true\n",
	       "W153", 0, "an agent without a network cannot ask a tool service");
	expect(f, "services:\n  a:\n    use_api_socket: true\n", "W104", 1,
	       "the engine's own switch");
	expect(f, "services: [a, b]\n", "W101", 0, "services that are no map");
	expect(f, "", "W101", 0, "an empty file");
}

static void test_kube(void)
{
	const enum lint_format f = LINT_KUBE;
	struct result res;

	lint_text(&res, f,
		  SV("kind: List\nitems:\n  - kind: CronJob\n    metadata: {name: n}\n    spec:\n"
		     "      jobTemplate:\n        spec:\n          template:\n            spec:\n"
		     "              hostPID: true\n"));
	ok(found_at(&res, "W108", 10), "a CronJob inside a List");
	for (size_t i = 0; i < res.found.n; i++)
		if (!strcmp(res.found.v[i].rule->id, "W108"))
			is_sv(res.found.v[i].where,
			      SV("CronJob/n: items[0].spec.jobTemplate.spec.template.spec.hostPID"),
			      "where it stands");
	arena_clear(&res.arena);
	expect(f,
	       "kind: Pod\nmetadata:\n  annotations:\n"
	       "    container.apparmor.security.beta.kubernetes.io/a: unconfined\nspec: {}\n",
	       "W116", 1, "the annotation of older versions");
	expect(f, "kind: Secret\nstringData: {password: correct-horse}\n", "W164", 1,
	       "a secret kept in a manifest");
	expect(f, "{\"kind\": \"Pod\", \"spec\": {\"hostIPC\": true}}", "W109", 1,
	       "a manifest in JSON");
	expect(f,
	       "kind: StatefulSet\nspec:\n  replicas: 3\n  volumeClaimTemplates:\n"
	       "    - spec: {accessModes: [ReadWriteOnce]}\n  template: {spec: {containers: []}}\n",
	       "W133", 0, "a claim per replica is not shared");
}

static void test_dockerfile(void)
{
	const enum lint_format f = LINT_DOCKERFILE;
	struct result res;

	expect(f, "# escape=`\nFROM a:1\nRUN x `\n  && curl u://h | sh\nUSER 1\n", "W183", 1,
	       "another escape character");
	expect(f, "FROM a:1\nRUN echo '<<EOF'\nUSER 1\n", "W131", 0, "what looks like a heredoc");
	expect(f, "FROM a:1\nCOPY <<EOF /x\nUSER root\nEOF\nUSER 7\n", "W131", 0,
	       "a heredoc's body is no instruction");
	expect(f, "FROM a:1 AS b\nUSER 7\nFROM b\n", "W131", 0, "a stage inherits its user");
	expect(f, "FROM a:1\nUSER 0:0\n", "W131", 1, "root by number");
	expect(f, "from a:1\nonbuild run curl u://h|sh\nuser 1\n", "W183", 1,
	       "lower case, ONBUILD");
	expect(f, "FROM scratch\nCOPY --from=x /root/.ssh /y\nUSER 1\n", "W163", 0,
	       "a copy from another stage is not a copy of the host");
	expect(f, "FROM a:1\nENV A=b MY_SECRET=\"hunter twelve\"\nUSER 1\n", "W164", 1,
	       "a quoted value with a blank");
	expect(f, "FROM a:1\nRUN curl u://h \\\n# note\n\n  | sh\nUSER 1\n", "W183", 1,
	       "comments and empty lines do not end an instruction");
	lint_text(&res, f,
		  SV("FROM a:1\nRUN a && \\\n# note\n  b && \\\n  wget -qO- u://h | sh\n"));
	ok(found_at(&res, "W183", 5), "the line after a comment in a continued instruction");
	arena_clear(&res.arena);
}

static void test_commands(void)
{
	const enum lint_format f = LINT_DOCKERFILE;

	expect(f, "RUN eval \"$(curl -s u://h)\"\n", "W183", 1, "eval of a download");
	expect(f, "RUN bash <(wget -O- u://h)\n", "W183", 1, "process substitution");
	expect(f, "RUN curl -o i.sh u://h && sh i.sh\n", "W183", 1, "saved, then run");
	expect(f, "RUN curl -o i.sh u://h && sha256sum -c s && sh i.sh\n", "W183", 0,
	       "checked first");
	expect(f, "RUN wget u://h/i.sh; chmod +x i.sh; ./i.sh\n", "W183", 1, "run by its name");
	expect(f, "RUN curl u://h | tar xz\n", "W183", 0, "unpacking is not running");
	expect(f, "RUN curl u://h | python3 -c 'print(1)'\n", "W183", 0, "standard input as data");
	expect(f, "RUN curl u://h | gunzip | sudo -E bash -s -- -y\n", "W183", 1, "three stages");
	expect(f, "RUN curl u://h || sh x\n", "W183", 0, "or is not a pipe");
	expect(f, "CMD [\"sh\", \"-c\", \"claude --dangerously-skip-permissions\"]\n", "W152", 1,
	       "a flag inside a script");
	expect(f, "CMD codex -s danger-full-access\n", "W152", 1, "a mode that is a value");
	expect(f, "CMD echo --yolo-mode\n", "W152", 0, "a longer word");
}

/* Agent settings. */

static void test_settings(void)
{
	expect(LINT_CLAUDE,
	       "{\"permissions\":{\"allow\":[\"Bash\"]},\"sandbox\":{\"enabled\":true,"
	       "\"allowUnsandboxedCommands\":false}}",
	       "W151", 0, "a shell inside a sandbox that cannot be left is confined");
	expect(LINT_CLAUDE, "{\"permissions\":{\"allow\":[\"Bash\",\"Bash(python3:*)\"]}}", "W151",
	       2, "an interpreter is any command");
	expect(LINT_CLAUDE, "{\"permissions\":{\"allow\":[\"Bash\"],\"deny\":[\"Bash\"]}}", "W151",
	       0, "deny wins");
	expect(LINT_CLAUDE, "{\"permissions\":{\"allow\":[\"Bash(python -m pytest:*)\"]}}", "W151",
	       0, "one module is one command");
	expect(LINT_CLAUDE, "{\"sandbox\":{\"enabled\":true}}", "W153", 1, "defaults are read too");
	expect(LINT_CLAUDE, "{\"sandbox\":{\"enabled\":true}}", "W155", 1,
	       "failing open by default");
	expect(LINT_CLAUDE,
	       "{\"permissions\":{\"deny\":[\"Read(~/.ssh/**)\",\"Read(~/.aws/**)\",\"Read(~/"
	       ".gnupg/**)\","
	       "\"Read(~/.kube/**)\",\"Read(~/.docker/**)\",\"Read(~/.netrc)\"]}}",
	       "W162", 0, "read rules count as denials");
	expect(LINT_SRT, "{\"filesystem\":{\"denyRead\":[\"/home/me\"],\"allowRead\":[\"~\"]}}",
	       "W162", 1, "allowRead wins over denyRead");
	expect(LINT_SRT, "{\"filesystem\":{\"allowWrite\":[\"/\",\".git/hooks\",\"src\"]}}", "W157",
	       2, "what decides the next run");
	expect(LINT_MCP,
	       "{\"servers\":{\"a\":{\"url\":\"https://h.example/?api_key=correct-horse\"}}}",
	       "W164", 1, "a key in a query");
	expect(LINT_MCP,
	       "{\"mcpServers\":{\"a\":{\"url\":\"https://h\",\"headers\":"
	       "{\"Authorization\":\"Bearer correct-horse-battery\"}}}}",
	       "W164", 1, "a key in a header");
	expect(LINT_MCP,
	       "{\"mcpServers\":{\"a\":{\"url\":\"https://h\",\"headers\":"
	       "{\"Authorization\":\"Bearer ${TOKEN}\"}}}}",
	       "W164", 0, "a reference is not a key");
	expect(LINT_MCP,
	       "{\"projects\":{\"/p\":{\"mcpServers\":{\"s\":{\"command\":\"uvx\",\"args\":"
	       "[\"--from\",\"git\",\"x\"]}}}}}",
	       "W182", 1, "servers of one project");
	expect(LINT_MCP, "{\"mcpServers\":{\"a\":{\"command\":\"s\",\"args\":[\"/\"]}}}", "W102", 1,
	       "a server that is given the root");
}

static void test_hosts(void)
{
	static const struct {
		const char *entry, *id;
	} cases[] = {
		{ "pastebin.com", "W141" },
		{ "https://PASTEBIN.com:443/raw", "W141" },
		{ "x.ngrok.io", "W141" },
		{ "*.github.com", "W141" },
		{ "github.com", NULL },
		{ "notpastebin.com", NULL },
		{ "pastebin.com.example.org", NULL },
		{ "*.s3.amazonaws.com", "W141" },
		{ "my-bucket.s3.amazonaws.com", NULL },
		{ "*.core.windows.net", "W141" },
		{ "*", "W142" },
		{ "*.com", "W142" },
		{ "*.co.uk", "W142" },
		{ "*.example.com", NULL },
		{ "0.0.0.0/0", "W142" },
		{ ".wikipedia.org", "W141" },
		{ "api.anthropic.com", NULL },
		{ "user:pw@webhook.site", "W141" },
		{ "[::1]:80", NULL },
		{ "::/0", "W142" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256];
		struct result res;

		(void)snprintf(text, sizeof(text), "{\"network\":{\"allowedDomains\":[\"%s\"]}}",
			       cases[i].entry);
		lint_text(&res, LINT_SRT, sv_from(text));
		ok(res.r == 0 &&
			   count(&res, "W141") == (cases[i].id && !strcmp(cases[i].id, "W141")) &&
			   count(&res, "W142") == (cases[i].id && !strcmp(cases[i].id, "W142")),
		   "host %s", cases[i].entry);
		arena_clear(&res.arena);
	}
}

static void test_places(void)
{
	static const struct {
		const char *path, *id;
	} cases[] = {
		{ "/", "W102" },
		{ "//./", "W102" },
		{ "/srv/..", "W102" },
		{ "/etc", "W103" },
		{ "/etc/", "W103" },
		{ "/etc/hosts", NULL },
		{ "/var/run/../run/docker.sock", "W104" },
		{ "/mnt/x/docker.sock", "W104" },
		{ "/run/user/1000", "W105" },
		{ "~", "W161" },
		{ "~/", "W161" },
		{ "/home/me", "W161" },
		{ "/home/me/code", NULL },
		{ "$HOME", "W161" },
		{ "$HOME/code", NULL },
		{ "${HOME:-/root}", "W161" },
		{ "~/.ssh", "W163" },
		{ "~/code/../.ssh/id_rsa", "W163" },
		{ "~/.ssh/known_hosts", NULL },
		{ "~/.sshx", NULL },
		{ "./backup/.aws/credentials", "W163" },
		{ ".", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256], name[300];

		(void)snprintf(text, sizeof(text), "services:\n  a:\n    volumes:\n      - %s:/x\n",
			       cases[i].path);
		(void)snprintf(name, sizeof(name), "mount of %s", cases[i].path);
		if (cases[i].id) {
			expect(LINT_COMPOSE, text, cases[i].id, 1, name);
			continue;
		}
		for (const char *const *id = (const char *const[]){ "W102", "W103", "W104", "W105",
								    "W161", "W163", NULL };
		     *id; id++)
			expect(LINT_COMPOSE, text, *id, 0, name);
	}
}

/* What is and what is not a secret. */
static void test_secrets(void)
{
	static const struct {
		const char *env;
		bool secret;
	} cases[] = {
		{ "OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwx", true },
		{ "OPENAI_API_KEY=your-key-here", false },
		{ "OPENAI_API_KEY=", false },
		{ "OPENAI_API_KEY=<key>", false },
		{ "HARMLESS=ghp_Zx81kQm3Lp09sTuVwYxA2bC4", true },
		{ "MAX_TOKENS=4096", false },
		{ "PUBLIC_KEY=ssh-ed25519", false },
		{ "KEY_FILE=/run/secrets/key", false },
		{ "API_TOKEN=/run/secrets/token", false },
		{ "DB_PASSWORD=hunter2", true },
		{ "DATABASE_URL=postgres://app:hunter2@db/app", true },
		{ "DATABASE_URL=postgres://app@db/app", false },
		{ "X=q7Rz2LmW9xTb4KvN8sYd3HcP", true },
		{ "COMMIT=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", false },
		{ "ID=123e4567-e89b-12d3-a456-426614174000", false },
		{ "JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64", false },
		{ "clientSecret=correct-horse", true },
		{ "A_TOKEN=00000000", false },
		{ "X=AAAAaaaa1111BBBBbbbb2222", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "docker run -e '%s' img:1\n", cases[i].env);
		expect(LINT_DOCKER, text, "W164", cases[i].secret, cases[i].env);
	}
}

static void print_all(const struct result *res, enum lint_format f, struct sv text, struct buf *b)
{
	const struct lint_file file = { .name = SV("dir/a file"),
					.text = text,
					.format = f,
					.findings = res->found.v,
					.n = res->found.n };

	lint_print_text(&file, b);
	lint_print_json(&file, 1, b);
	lint_print_sarif(&file, 1, b);
}

static bool contains(struct sv s, const char *needle)
{
	return memmem(s.p, s.n, needle, strlen(needle)) != NULL;
}

/* The value must be in no output, whatever rule quotes its line. */
static void test_masked(void)
{
	static const struct {
		enum lint_format f;
		const char *text, *value;
		bool beside; /* not what a finding points at, but in what it quotes */
	} cases[] = {
		{ LINT_DOCKER, "docker run --privileged img; DB_PASSWORD=hunter2 x\n", "hunter2",
		  true },
		{ LINT_DOCKER, "docker run --pid=host img | x ghp_Zx81kQm3Lp09sTuVwYxA2bC4\n",
		  "Zx81kQm", true },
		{ LINT_SRT, "{\"network\":{\"allowedDomains\":[\"https://u:hunter2@*\"]}}",
		  "hunter2", true },
		{ LINT_DOCKER, "docker run --privileged -e DB_PASSWORD=hunter2 img\n", "hunter2" },
		{ LINT_DOCKER, "docker run --privileged -e 'DB_PASSWORD=hunter 2 x' img\n",
		  "hunter 2" },
		{ LINT_DOCKER, "docker run -e U=postgres://a:hunter2@db img\n", "hunter2" },
		{ LINT_DOCKER, "docker run img server --token hunter2x --yolo\n", "hunter2x" },
		{ LINT_COMPOSE,
		  "services:\n  a: {privileged: true, environment: {A_TOKEN: hunter2}}\n",
		  "hunter2" },
		{ LINT_KUBE,
		  "kind: Pod\nspec: {hostPID: true, containers: [{env: [{name: A_KEY, value: "
		  "hunter2}]}]}\n",
		  "hunter2" },
		{ LINT_KUBE, "kind: Secret\nstringData:\n  password: \"hunter2 \\u00e4\"\n",
		  "hunter2" },
		{ LINT_DOCKERFILE, "FROM a\nENV A_SECRET hunter2\n", "hunter2" },
		{ LINT_MCP,
		  "{\"mcpServers\":{\"s\":{\"command\":\"c\",\"env\":{\"A_KEY\":\"hunter2\"}}}}",
		  "hunter2" },
		{ LINT_MCP,
		  "{\"mcpServers\":{\"s\":{\"url\":\"https://pastebin.com/?token=hunter2\"}}}",
		  "hunter2" },
		{ LINT_CLAUDE, "{\"apiKeyHelper\":\"echo sk-ant-Vb7Qm2xKpL9sTz4RwYc8\"}",
		  "Vb7Qm2xKp" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scoped_buf b = BUF_INIT(FILE_MAX);
		struct result res;

		lint_text(&res, cases[i].f, sv_from(cases[i].text));
		print_all(&res, cases[i].f, sv_from(cases[i].text), &b);
		ok(res.r == 0 && res.found.n > 0 && count(&res, "W164") == !cases[i].beside,
		   "secret %zu is there", i);
		if (!ok(!contains(buf_view(&b), cases[i].value), "secret %zu is not printed", i))
			tap_note(SV_FMT, SV_ARG(sv_sub(buf_view(&b), 0, 600)));
		arena_clear(&res.arena);
	}
}

/* Nothing from the file moves the cursor or changes the reading order. */
static void test_terminal(void)
{
	const struct sv text = SV("docker run --privileged -v ~:/x\x1b[2J \xe2\x80\xae img\x07\n");
	const struct lint_file file = { .name = SV("a\nb"), .text = text, .error = NULL };
	struct lint_file shown = file;
	scoped_buf b = BUF_INIT(FILE_MAX);
	struct result res;

	lint_text(&res, LINT_DOCKER, text);
	shown.findings = res.found.v;
	shown.n = res.found.n;
	lint_print_text(&shown, &b);
	ok(res.found.n > 1 && b.n > 0, "findings are printed");
	ok(!contains(buf_view(&b), "\x1b") && !contains(buf_view(&b), "\x07"),
	   "no escape sequences");
	ok(!contains(buf_view(&b), "\xe2\x80\xae"), "no direction overrides");
	ok(!contains(buf_view(&b), "a\nb"), "no newline from a file name");
	arena_clear(&res.arena);
}

/* Bounds: an error, never an empty answer and never a crash. */
static void test_bounds(void)
{
	scoped_buf b = BUF_INIT(FILE_MAX);

	buf_str(&b, "a: &a [x, x, x, x, x, x, x, x, x, x]\n");
	for (char ch = 'b'; ch < 'k'; ch++) {
		buf_fmt(&b, "%c: &%c [", ch, ch);
		for (int i = 0; i < 10; i++)
			buf_fmt(&b, "%s*%c", i ? ", " : "", ch - 1);
		buf_str(&b, "]\n");
	}
	expect_code(LINT_COMPOSE, buf_view(&b), WRIT_E_LIMIT, "aliases that multiply");
	buf_clear(&b);
	expect_code(LINT_COMPOSE, SV("a: &a [*a]\n"), WRIT_E_SYNTAX, "an alias inside its anchor");
	expect_code(LINT_COMPOSE, SV("a: *b\n"), WRIT_E_SYNTAX, "an alias without an anchor");
	expect_code(LINT_COMPOSE, SV("a: 1\nb: 2\na: 3\n"), WRIT_E_SYNTAX, "a duplicate key");
	expect_code(LINT_COMPOSE, SV("a: [\n"), WRIT_E_SYNTAX, "broken YAML");
	expect_code(LINT_COMPOSE, SV("? [a]\n: b\n"), WRIT_E_SYNTAX, "a key that is a list");
	expect_code(LINT_COMPOSE, SV("<<: 3\n"), WRIT_E_SYNTAX, "a merge of nothing");
	buf_fill(&b, '[', 100);
	expect_code(LINT_COMPOSE, buf_view(&b), WRIT_E_LIMIT, "deep YAML");
	expect_code(LINT_MCP, buf_view(&b), WRIT_E_LIMIT, "deep JSON");
	buf_clear(&b);
	for (int i = 0; i < 70; i++)
		buf_fmt(&b, "a%d: &a%d [%s%d]\n", i, i, i ? "*a" : "", i ? i - 1 : 0);
	expect_code(LINT_COMPOSE, buf_view(&b), WRIT_E_LIMIT, "depth through aliases");
	buf_clear(&b);
	for (int i = 0; i < 2000; i++)
		buf_fmt(&b, "k%d: &n%d x\n", i, i);
	expect_code(LINT_COMPOSE, buf_view(&b), WRIT_E_LIMIT, "more anchors than anyone writes");
	buf_clear(&b);
	buf_fill(&b, ' ', LINT_BYTES_MAX + 1);
	expect_code(LINT_DOCKER, buf_view(&b), WRIT_E_LIMIT, "a file above 4 MiB");
	expect_code(LINT_DOCKER, SV("a\0b"), WRIT_E_SYNTAX, "a NUL byte");
	expect_code(LINT_DOCKER, SV("\xff\xfe"), WRIT_E_SYNTAX, "not UTF-8");
	expect_code(LINT_MCP, SV("{\"a\":1,\"a\":2}"), WRIT_E_SYNTAX, "a duplicate member");
	expect_code(LINT_MCP, SV("{} /* x"), WRIT_E_SYNTAX, "a comment without an end");
	expect_code(LINT_MCP, SV("[]"), WRIT_E_SYNTAX, "not an object");
	expect_code(LINT_MCP, SV(""), WRIT_E_SYNTAX, "nothing at all");
	expect_code(LINT_UNKNOWN, SV("hello"), WRIT_E_SYNTAX, "a file of no known kind");
}

/* Work grows with the file: the largest files must end soon. */
static void test_large(void)
{
	static const struct {
		enum lint_format f;
		const char *head, *piece;
	} cases[] = {
		{ LINT_DOCKER, "", "docker run ' " },
		{ LINT_DOCKER, "docker run ", "$(" },
		{ LINT_DOCKERFILE, "FROM a\nRUN ", "curl|" },
		{ LINT_DOCKERFILE, "", "RUN <<A\n" },
		{ LINT_COMPOSE, "a: ", "x y " },
		{ LINT_KUBE, "kind: Pod\n# ", "x" },
		{ LINT_MCP, "{\"a\":[1", ",1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scoped_buf b = BUF_INIT(FILE_MAX);
		struct result res;

		buf_str(&b, cases[i].head);
		while (b.n + strlen(cases[i].piece) <= LINT_BYTES_MAX)
			buf_str(&b, cases[i].piece);
		lint_text(&res, cases[i].f, buf_view(&b));
		ok(res.r <= 0, "large file %zu ends (%d, %s)", i, res.r, res.err.what);
		arena_clear(&res.arena);
	}
}

static void test_errors(void)
{
	struct result res;

	lint_text(&res, LINT_MCP, SV("{\"env\": {\"KEY\": sk-ant-very-secret}}"));
	ok(res.r == WRIT_E_SYNTAX && !strstr(res.err.what, "secret"),
	   "errors do not quote the file");
	ok(strstr(res.err.what, "line 1") != NULL, "but say where: %s", res.err.what);
	arena_clear(&res.arena);
	lint_text(&res, LINT_COMPOSE, SV("a: b\n c: d\n"));
	ok(strstr(res.err.what, "line 2") != NULL, "also in YAML: %s", res.err.what);
	arena_clear(&res.arena);
	expect(LINT_MCP, "\xef\xbb\xbf{\"mcpServers\":{\"a\":{\"trust\":true}}}", "W152", 1,
	       "a byte order mark is skipped");
	expect(LINT_MCP,
	       "{\"mcpServers\":{\"a\":{\"url\":\"https://h/*//\",/* // */\"trust\":true,},},}",
	       "W152", 1, "comments inside strings stay");
	expect(LINT_COMPOSE, "services: {a: {privileged: true}}\n---\nservices: {a: {pid: host}}\n",
	       "W108", 1, "every document is read");
}

static void test_detect(void)
{
	static const struct {
		const char *name, *text;
		enum lint_format f;
	} cases[] = {
		{ "a/Dockerfile", "", LINT_DOCKERFILE },
		{ "Dockerfile.dev", "", LINT_DOCKERFILE },
		{ "Containerfile", "", LINT_DOCKERFILE },
		{ "docker-compose.override.yml", "", LINT_COMPOSE },
		{ "compose.yaml", "", LINT_COMPOSE },
		{ ".devcontainer/devcontainer.json", "{}", LINT_DEVCONTAINER },
		{ ".mcp.json", "{}", LINT_MCP },
		{ "claude_desktop_config.json", "{}", LINT_MCP },
		{ "/home/x/.srt-settings.json", "{}", LINT_SRT },
		{ ".claude/settings.json", "{\"permissions\":{}}", LINT_CLAUDE },
		{ ".claude/settings.local.json", "{}", LINT_CLAUDE },
		{ "run.sh", "", LINT_DOCKER },
		{ "Makefile", "", LINT_DOCKER },
		{ "pod.json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", LINT_KUBE },
		{ "x.yaml", "# c\napiVersion: v1\nkind: Pod\n", LINT_KUBE },
		{ "x.yaml", "services:\n", LINT_COMPOSE },
		{ "x", "#!/bin/sh\n", LINT_DOCKER },
		{ "x", "{\"a\":{\"mcpServers\":1}}", LINT_UNKNOWN },
		{ "x", "{\"a\":\"mcpServers\"}", LINT_UNKNOWN },
		{ "package.json", "{\"name\":\"x\"}", LINT_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ok(lint_detect(sv_from(cases[i].name), sv_from(cases[i].text)) == cases[i].f,
		   "%s is %s", cases[i].name, lint_format_name(cases[i].f));
}

/* The table of rules, and the page that shows it. */

static void doc_row(const struct lint_rule *r, struct buf *b)
{
	buf_fmt(b, "| %s | `%s` | %s |", r->id, r->name, lint_severity_name(r->severity));
	for (unsigned f = LINT_UNKNOWN + 1; f < LINT_FORMAT_COUNT; f++)
		buf_str(b, lint_applies(r, (enum lint_format)f) ? " x |" : " - |");
	buf_ch(b, '\n');
}

/* Each host that the page lists is one we would find. */
static void check_doc_hosts(struct sv doc)
{
	const char *start = memmem(doc.p, doc.n, "```hosts\n", 9);
	size_t n = 0;

	if (!ok(start != NULL, "docs/lint.md lists the hosts"))
		return;
	doc = sv_skip(doc, (size_t)(start - doc.p) + 9);
	while (doc.n && !sv_starts(doc, SV("```"))) {
		struct sv line = sv_cut(&doc, '\n');
		struct sv name = sv_cut(&line, ' ');
		const bool wildcard = sv_starts(name, SV("*."));

		if (wildcard)
			name = sv_skip(name, 2);
		n++;
		if (!lint_exfiltration_host(name, wildcard))
			ok(false, SV_FMT " is listed but not known", SV_ARG(name));
	}
	ok(n > 80, "%zu hosts are listed and known", n);
}

static void test_rules(void)
{
	scoped_buf doc = BUF_INIT(FILE_MAX);
	const struct lint_rule *r, *last = NULL;

	ok(read_source("docs/lint.md", &doc), "docs/lint.md");
	for (size_t i = 0; (r = lint_rule_at(i)) != NULL; last = r, i++) {
		scoped_buf row = BUF_INIT(1024);

		ok(!last || strcmp(last->id, r->id) < 0, "%s comes in order", r->id);
		ok(r->endangers && r->title[0] && r->why[0] && r->fix[0], "%s is complete", r->id);
		doc_row(r, &row);
		if (!ok(contains(buf_view(&doc), row.p), "%s has its row in docs/lint.md", r->id))
			tap_note("%s", row.p);
		ok(contains(buf_view(&doc), r->title) && contains(buf_view(&doc), r->why) &&
			   contains(buf_view(&doc), r->fix),
		   "%s is described there in the same words", r->id);
	}
	check_doc_hosts(buf_view(&doc));
}

/* Printers against golden files. */

static void print_as(const char *how, const struct lint_file *file, struct buf *b)
{
	if (!strcmp(how, "text"))
		lint_print_text(file, b);
	else if (!strcmp(how, "json"))
		lint_print_json(file, 1, b);
	else
		lint_print_sarif(file, 1, b);
}

static bool print_sample(const char *how, struct buf *b)
{
	scoped_buf text = BUF_INIT(FILE_MAX);
	struct lint_file file = { .name = SV("golden/sample compose.yml"), .format = LINT_COMPOSE };
	struct result res;

	if (!read_source("tests/lint/golden/sample.yml", &text))
		return false;
	lint_text(&res, LINT_COMPOSE, buf_view(&text));
	file.text = buf_view(&text);
	file.findings = res.found.v;
	file.n = res.found.n;
	print_as(how, &file, b);
	arena_clear(&res.arena);
	return res.r == 0 && !b->failed;
}

static void test_golden(void)
{
	static const char *const kinds[] = { "text", "json", "sarif" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		scoped_buf got = BUF_INIT(FILE_MAX), want = BUF_INIT(FILE_MAX);
		char path[256];

		(void)snprintf(path, sizeof(path), "tests/lint/golden/sample.%s", kinds[i]);
		ok(print_sample(kinds[i], &got) && read_source(path, &want) &&
			   sv_eq(buf_view(&got), buf_view(&want)),
		   "%s output is as in %s", kinds[i], path);
	}
}

/* Rules and findings of another room, a finding without a place, an unreadable file. */
static void test_foreign(void)
{
	static const struct lint_rule foreign = { "X1",	   "foreign", LINT_INFO, 0,
						  "Title", "Why",     "Fix" };
	const struct lint_finding f = { .rule = &foreign, .where = SV(""), .detail = SV("") };
	const struct lint_file files[] = {
		{ .name = SV("a"), .text = SV("x\n"), .findings = &f, .n = 1 },
		{ .name = SV("b"), .text = SV(""), .error = "not YAML" },
	};
	scoped_buf b = BUF_INIT(FILE_MAX);

	lint_print_text(&files[0], &b);
	lint_print_text(&files[1], &b);
	is_sv(buf_view(&b),
	      SV("a: info: Title [X1 foreign]\n  why: Why\n  fix: Fix\nb: error: not YAML\n"),
	      "text of both");
	buf_clear(&b);
	lint_print_sarif(files, 2, &b);
	ok(contains(buf_view(&b), "\"id\":\"X1\""), "the rule is described in SARIF");
	ok(contains(buf_view(&b), "\"executionSuccessful\":false"), "a failure is not a success");
	ok(!contains(buf_view(&b), "\"startLine\":0"), "no line zero");
	buf_clear(&b);
	lint_print_json(files, 2, &b);
	ok(contains(buf_view(&b), "\"error\":\"not YAML\""), "the error is in the JSON");
}

/* A second opinion on the structure of SARIF, from another JSON parser. */
static void test_sarif(const char *self)
{
	char script[1024];
	int status = -1;
	pid_t pid;

	(void)snprintf(script, sizeof(script), "%s/tests/lint/sarif_check.py", source_root());
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)dup2(2, 1); /* its words are not TAP */
		execlp("python3", "python3", script, self, (char *)NULL);
		_exit(127);
	}
	ok(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		   WEXITSTATUS(status) == 0,
	   "SARIF has the members the standard requires");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "print")) { /* for sarif_check.py and golden files */
		scoped_buf b = BUF_INIT(FILE_MAX);

		if (!print_sample(argv[2], &b))
			return 1;
		(void)fwrite(b.p, 1, b.n, stdout);
		return 0;
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	test_fixtures();
	test_no_strays();
	test_docker();
	test_compose();
	test_kube();
	test_dockerfile();
	test_commands();
	test_settings();
	test_hosts();
	test_places();
	test_secrets();
	test_masked();
	test_terminal();
	test_bounds();
	test_large();
	test_errors();
	test_detect();
	test_rules();
	test_golden();
	test_foreign();
	test_sarif(argv[0]);
	return tap_done();
}

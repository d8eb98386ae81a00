"""node.py - profile node: packages with native code, workers, a local server."""
from kit import LONG, files, keeps, outside, shows, skip, test, tool, work

# The calls of Node-API that the addon needs, so that no headers have to be installed.
ADDON = """\
    #include <stdint.h>
    #include <stddef.h>
    typedef struct e *env; typedef struct v *value; typedef struct i *info;
    extern int napi_create_function(env, const char *, size_t, value (*)(env, info), void *, value *);
    extern int napi_set_named_property(env, value, const char *, value);
    extern int napi_get_cb_info(env, info, size_t *, value *, value *, void **);
    extern int napi_get_value_int32(env, value, int32_t *);
    extern int napi_create_int32(env, int32_t, value *);
    static value twice(env e, info i)
    {
        size_t n = 1;
        value arg, out = NULL;
        int32_t x = 0;
        napi_get_cb_info(e, i, &n, &arg, NULL, NULL);
        napi_get_value_int32(e, arg, &x);
        napi_create_int32(e, 2 * x, &out);
        return out;
    }
    __attribute__((visibility("default"))) value napi_register_module_v1(env e, value exports)
    {
        value f = NULL;
        napi_create_function(e, "twice", 5, twice, NULL, &f);
        napi_set_named_property(e, exports, "twice", f);
        return exports;
    }
    """
PROJECT = {
    "addon/package.json": """\
        {"name": "addon", "version": "1.0.0", "main": "index.js",
         "scripts": {"install": "mkdir -p build && cc -shared -fPIC -o build/addon.node addon.c"}}
        """,
    "addon/addon.c": ADDON,
    "addon/index.js": "module.exports = require('./build/addon.node');\n",
    "plain/package.json": '{"name": "plain", "version": "2.0.0", "bin": {"plain": "cli.js"}}\n',
    "plain/index.js": "exports.name = 'plain';\n",
    "plain/cli.js": "#!/usr/bin/env node\nconsole.log('cli ' + process.argv.slice(2).join(' '));\n",
    "app/package.json": """\
        {"name": "app", "version": "0.1.0", "private": true,
         "scripts": {"test": "node --test", "hello": "plain hello"},
         "dependencies": {"addon": "file:../addon", "plain": "file:../plain"}}
        """,
    "app/test/all.test.js": """\
        const test = require('node:test');
        const assert = require('node:assert');
        const { Worker } = require('node:worker_threads');
        const http = require('node:http');
        const { execFileSync } = require('node:child_process');
        const fs = require('node:fs');

        test('native code', () => assert.strictEqual(require('addon').twice(21), 42));
        test('a plain dependency', () => assert.strictEqual(require('plain').name, 'plain'));
        test('worker threads', async () => {
          const w = new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
          assert.strictEqual(await new Promise((yes, no) => { w.on('message', yes); w.on('error', no); }), 42);
        });
        test('a server and its client on the loopback', async () => {
          const server = http.createServer((q, a) => a.end('path ' + q.url));
          await new Promise((go) => server.listen(0, '127.0.0.1', go));
          const answer = await fetch(`http://127.0.0.1:${server.address().port}/x`);
          assert.strictEqual(await answer.text(), 'path /x');
          server.close();
          server.closeAllConnections();
        });
        test('child processes', () => assert.strictEqual(String(execFileSync('echo', ['hi'])), 'hi\\n'));
        test('watching a file', async () => {
          fs.writeFileSync('watched', '1');
          const seen = new Promise((yes) => { const w = fs.watch('watched', () => { w.close(); yes(true); }); });
          fs.writeFileSync('watched', '2');
          assert.ok(await seen);
        });
        test('WebAssembly memory', () => assert.ok(new WebAssembly.Memory({ initial: 1 })));
        test('the network is not there', async () => {
          await assert.rejects(fetch('http://192.0.2.1/'));
        });
        """,
}
WRITE = ["--allow", "write:."]


@test("npm installs a native addon from a directory, and the tests pass")
def addon(w):
    if not (tool(w, "node") and tool(w, "npm") and tool(w, "cc")):
        skip(w, "node, npm or a C compiler is not installed")
        return
    files(w.ws, PROJECT)
    r = work(w, "node", "cd app; npm install --offline --no-audit --no-fund; npm test 2>&1", opts=WRITE)
    w.exits(r, 0, "npm install and npm test succeed")
    w.ok("# pass 8" in r.text or "pass 8" in r.text, "all tests ran", r)
    w.ok((w.ws / "app/package-lock.json").exists(), "there is a lock file")
    r = work(w, "node", """
        cd app; rm -rf ../addon/build
        npm ci --offline --no-audit --no-fund --install-links
        node -p 'require("addon").twice(4)'; npm run -s hello; npx --offline plain there
        """, opts=WRITE)
    w.same((r.code, r.text.splitlines()[-3:]), (0, ["8", "cli hello", "cli there"]), "npm ci makes it anew from the lock", r)
    w.ok((w.ws / "app/node_modules/addon/build/addon.node").is_file(), "with the addon built in its place")
    w.same(outside(w, tool(w, "node"), "-p", "require('addon').twice(5)", cwd=w.ws / "app").strip(), "10",
           "node outside can use it")
    r = work(w, "node", "npm install -g --offline ./plain", opts=WRITE)
    w.ok(r.code not in (0, None), "nothing can be installed for the whole machine", r)


@test("a package comes from the cache that an earlier session filled")
def cached(w):
    keeps(w, "node", "npm_config_cache", "node/npm")
    if not tool(w, "npm"):
        return
    files(w.ws, PROJECT)
    r = work(w, "node", 'cd plain; npm pack -s; npm cache add "$PWD/plain-2.0.0.tgz"; npm cache ls', opts=WRITE)
    w.exits(r, 0, "npm packs a package and caches it")
    r = work(w, "node", "npm cache verify")
    w.ok(r.code == 0 and "Content verified: 1" in r.text, "the next session has it", r)


@test("version managers are shown, tokens are not")
def trees(w):
    shows(w, "node", [".nvm/versions/node/v20/bin/tool", ".volta/bin/node", ".volta/tools/image/x", ".local/share/fnm/x",
                      ".asdf/installs/nodejs/20/bin/node", ".local/share/mise/installs/node/20/bin/node"],
          [".npmrc", ".nvm/alias/default", ".config/gh/hosts.yml", ".ssh/id_rsa", ".yarnrc.yml"])
    env = {**w.env, "PATH": f"{w.home}/.nvm/versions/node/v20/bin:{w.env['PATH']}"}
    r = w.run("tool", opts=["--profile", "node"], env=env)
    w.same((r.code, r.text), (0, "works\n"), "a program of a version manager in PATH runs", r)


@test("node-gyp builds with the headers of the machine")
def gyp(w):
    if not LONG:
        skip(w, "only with WRIT_TEST_LONG")
        return
    node = tool(w, "node")
    headers = outside(w, node, "-p", "require('path').resolve(process.execPath, '../..')").strip() if node else "/"
    if not node or outside(w, "sh", "-c", f"ls {headers}/include/node/node_api.h 2>/dev/null || true") == "":
        skip(w, "the headers of node are not installed")
        return
    files(w.ws, {"package.json": '{"name": "g", "version": "1.0.0", "gypfile": true}\n',
                 "binding.gyp": '{"targets": [{"target_name": "g", "sources": ["g.c"]}]}\n', "g.c": ADDON})
    r = work(w, "node", 'npm install --offline --no-audit --no-fund --nodedir="$0"; '
             'node -p "require(\'./build/Release/g.node\').twice(21)"', headers, opts=WRITE)
    w.same((r.code, r.text.splitlines()[-1:]), (0, ["42"]), "the addon is built and loaded", r)

"""python.py - profile python: wheels, environments, caches."""
from kit import PYTHON, files, keeps, outside, shows, skip, test, tool, work

EXTENSION = """\
    #define PY_SSIZE_T_CLEAN
    #include <Python.h>
    static PyObject *twice(PyObject *self, PyObject *arg)
    {
        long n = PyLong_AsLong(arg);
        (void)self;
        return n == -1 && PyErr_Occurred() ? NULL : PyLong_FromLong(2 * n);
    }
    static PyMethodDef methods[] = { { "twice", twice, METH_O, "" }, { 0 } };
    static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_fast", 0, -1, methods, 0, 0, 0, 0 };
    PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
    """
PROJECT = {
    "setup.py": """\
        from setuptools import Extension, setup
        setup(name="quick", version="1.0", packages=["quick"], ext_modules=[Extension("quick._fast", ["fast.c"])])
        """,
    "quick/__init__.py": "from quick._fast import twice\n",
    "fast.c": EXTENSION,
    "tests/test_quick.py": """\
        import unittest
        import quick
        class Quick(unittest.TestCase):
            def test_twice(self):
                self.assertEqual(quick.twice(21), 42)
                self.assertIn("/env/", quick.__file__)
            def test_error(self):
                self.assertRaises(TypeError, quick.twice, "x")
        """,
}
WRITE = ["--allow", "write:."]


def has(w, *checks):
    return all(w.call([PYTHON, "-c", c]).code == 0 for c in checks)


@test("a wheel with a compiled extension is built, installed and used")
def wheel(w):
    files(w.ws, PROJECT)
    if not has(w, "import setuptools, wheel", "import pip, ensurepip",
               "import sysconfig as s, os; os.stat(s.get_path('include') + '/Python.h')") or not tool(w, "gcc"):
        skip(w, "Python is installed without pip, setuptools, wheel, venv or its headers")
        return
    r = work(w, "python", """
        "$0" -m pip wheel -q --no-index --no-build-isolation --no-deps -w dist .
        "$0" -m venv env
        env/bin/pip install -q --no-index dist/*.whl
        cd tests; ../env/bin/python -m unittest -v
        """, PYTHON, opts=WRITE)
    w.exits(r, 0, "building, installing and testing succeed")
    w.ok("Ran 2 tests" in r.said, "the tests ran", r)
    w.same(len(list((w.ws / "dist").glob("quick-1.0-*linux*.whl"))), 1, "the wheel has the platform in its name")
    w.same(outside(w, w.ws / "env/bin/python", "-c", "import quick; print(quick.twice(4))", cwd=w.home), "8\n",
           "the environment works outside too")
    r = work(w, "python", """
        . env/bin/activate
        pip uninstall -q -y quick; ! (cd tests; python -c "import quick") 2>/dev/null
        pip install -q --no-index --no-build-isolation --no-deps --find-links dist quick
        cd tests; python -c 'import quick; print(quick.twice(5))'
        """, opts=WRITE)
    w.same((r.code, r.text), (0, "10\n"), "the activated environment is changed in a later session", r)
    r = w.call([w.program, "run", "--profile", "python", *WRITE, "--", PYTHON, "-m", "pip", "install", "-q", "--no-index",
                "--break-system-packages", "--prefix=/usr/local", *(w.ws / "dist").glob("*.whl")], timeout=60)
    w.ok(r.code not in (0, None), "nothing can be installed into the system", r)


@test("an environment without pip, and a module built by hand")
def by_hand(w):
    files(w.ws, {"native.c": "int thrice(int n) { return 3 * n; }\n",
                 "use.py": "import ctypes, sys\nprint(ctypes.CDLL('./native.so').thrice(int(sys.argv[1])), sys.prefix)\n"})
    r = work(w, "python", """
        "$0" -m venv --without-pip bare
        cc -shared -fPIC -o native.so native.c
        bare/bin/python use.py 14
        """, PYTHON, opts=WRITE)
    w.same((r.code, r.text), (0, f"42 {w.ws}/bare\n"), "it runs in the environment", r)


@test("processes, threads, sockets, databases and temporary files")
def library(w):
    files(w.ws, {"all.py": """\
        import asyncio, concurrent.futures, ctypes, multiprocessing, pathlib, sqlite3, ssl, subprocess, tempfile, threading
        import http.server, urllib.request
        from multiprocessing import shared_memory

        def square(n):
            return n * n

        async def child():
            p = await asyncio.create_subprocess_exec("sh", "-c", "echo async", stdout=subprocess.PIPE)
            return (await p.communicate())[0]

        def main():
            with multiprocessing.Pool(2) as pool:
                assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
            for method in ("fork", "spawn", "forkserver"):
                with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
                    assert list(pool.map(square, [3])) == [9], method
            block = shared_memory.SharedMemory(create=True, size=4096)
            block.buf[0] = 7
            block.close()
            block.unlink()
            assert asyncio.run(child()) == b"async\\n"
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/all.py", timeout=10) as answer:
                assert answer.read() == pathlib.Path("all.py").read_bytes()
            for name in (":memory:", "data.db"):
                base = sqlite3.connect(name)
                assert base.execute("pragma journal_mode=wal").fetchone()
                base.execute("create table t(a)")
                base.execute("insert into t values (1)")
                base.commit()
                base.close()
            with tempfile.TemporaryDirectory() as d:
                assert d.startswith("/tmp/"), d
            assert ssl.create_default_context().get_ca_certs() is not None
            print("all")

        if __name__ == "__main__":
            main()
        """})
    r = work(w, "python", '"$0" all.py 2>log || { cat log; exit 1; }', PYTHON, opts=WRITE)
    w.same((r.code, r.text), (0, "all\n"), "the standard library finds what it needs", r)


@test("caches are kept and version managers shown")
def trees(w):
    keeps(w, "python", "PIP_CACHE_DIR", "python/pip")
    keeps(w, "python", "UV_CACHE_DIR", "python/uv")
    shows(w, "python", [".pyenv/versions/3.9/bin/python3.9", ".pyenv/shims/tool", ".local/share/uv/python/x/bin/python",
                        ".local/share/mise/installs/python/3/bin/python", ".asdf/installs/python/3/bin/python"],
          [".netrc", ".pypirc", ".ssh/id_ed25519", ".config/pip/pip.conf", ".local/share/uv/credentials/x"])
    env = {**w.env, "PATH": f"{w.home}/.pyenv/shims:{w.env['PATH']}"}
    r = w.run("tool", opts=["--profile", "python"], env=env)
    w.same((r.code, r.text), (0, "works\n"), "a shim in PATH runs", r)

"""c.py - profile c: make, cmake, meson, ccache."""
from kit import files, keeps, outside, skip, test, tool, work

SOURCES = {
    "src/sum.h": "int sum(const int *v, int n);\n",
    "src/sum.c": """\
        #include "sum.h"
        int sum(const int *v, int n)
        {
            int s = 0;
            while (n-- > 0)
                s += *v++;
            return s;
        }
        """,
    "src/main.c": """\
        #include <math.h>
        #include <pthread.h>
        #include <stdio.h>
        #include "sum.h"
        #ifndef GREETING
        #define GREETING "plain"
        #endif
        static void *half(void *p) { *(double *)p = sqrt(1764); return p; }
        int main(void)
        {
            double root = 0;
            pthread_t t;
            pthread_create(&t, NULL, half, &root);
            pthread_join(t, NULL);
            printf("%s %d %.0f\\n", GREETING, sum((int[]){ 20, 22 }, 2), root);
            return 0;
        }
        """,
    "test/test_sum.c": """\
        #include <assert.h>
        #include "../src/sum.h"
        int main(void)
        {
            assert(sum((int[]){ 1, 2, 3 }, 3) == 6);
            assert(sum((int[]){ 0 }, 0) == 0);
            return 0;
        }
        """,
}
MAKEFILE = """\
CC ?= gcc
all: build/app
build/%.o: src/%.c src/sum.h
\t@mkdir -p build
\t$(CC) $(CFLAGS) -c -o $@ $<
build/libsum.a: build/sum.o
\tar rcs $@ $^
build/app: build/main.o build/libsum.a
\t$(CC) -o $@ $^ -lm -lpthread
build/test_sum: test/test_sum.c build/libsum.a
\t$(CC) $(CFLAGS) -o $@ $^
check: build/test_sum build/app
\t./build/test_sum
\t./build/app | grep -q '42 42'
install: build/app
\tinstall -D -m755 build/app $(DESTDIR)/usr/local/bin/writ-profile-app
.PHONY: all check install
"""


@test("make -j2 builds and tests a project")
def with_make(w):
    files(w.ws, SOURCES)
    (w.ws / "Makefile").write_text(MAKEFILE)
    r = work(w, "c", "make -j2 all; make -j2 check")
    w.exits(r, 0, "it builds and its tests pass")
    w.same(outside(w, w.ws / "build/app"), "plain 42 42\n", "the program runs outside")
    r = work(w, "c", "make -q all && make -n all")
    w.exits(r, 0, "in the next session nothing is out of date")
    w.ok("gcc" not in r.text, "and nothing is built again", r)
    r = work(w, "c", "make install DESTDIR=; echo installed")
    w.ok(r.code != 0 and "installed" not in r.text, "it cannot be installed on the machine", r)
    r = work(w, "c", "make install DESTDIR=$PWD/root; ls root/usr/local/bin")
    w.same((r.code, r.text.splitlines()[-1:]), (0, ["writ-profile-app"]), "it can below the workspace", r)


@test("CC, CFLAGS and MAKEFLAGS come along, others do not")
def variables(w):
    files(w.ws, SOURCES)
    (w.ws / "Makefile").write_text(MAKEFILE)
    env = {**w.env, "CFLAGS": '-O1 -DGREETING=\\"chosen\\"', "MAKEFLAGS": "-s", "CC": "cc", "SECRET_TOKEN": "x"}
    r = work(w, "c", 'make check; ./build/app; echo "$CC ${SECRET_TOKEN-none}"', env=env)
    w.same((r.code, r.text), (0, "chosen 42 42\ncc none\n"), "the build uses them", r)


@test("cmake and meson")
def generators(w):
    files(w.ws, SOURCES)
    files(w.ws, {"CMakeLists.txt": """\
        cmake_minimum_required(VERSION 3.13)
        project(app C)
        enable_testing()
        find_package(Threads REQUIRED)
        add_library(sum src/sum.c)
        add_executable(app src/main.c)
        target_link_libraries(app sum m Threads::Threads)
        add_executable(test_sum test/test_sum.c)
        target_link_libraries(test_sum sum)
        add_test(NAME sum COMMAND test_sum)
        """, "meson.build": """\
        project('app', 'c')
        sum = static_library('sum', 'src/sum.c')
        executable('app', 'src/main.c', link_with: sum, dependencies: [dependency('threads'),
          meson.get_compiler('c').find_library('m')])
        test('sum', executable('test_sum', 'test/test_sum.c', link_with: sum))
        """})
    if tool(w, "cmake") and tool(w, "make"):
        r = work(w, "c", "cmake -S . -B cm >/dev/null; cmake --build cm -j2; cd cm; ctest --output-on-failure")
        w.exits(r, 0, "cmake configures, builds and tests")
        w.same(outside(w, w.ws / "cm/app"), "plain 42 42\n", "what cmake built runs outside")
    else:
        skip(w, "cmake is not installed")
    if tool(w, "meson") and tool(w, "ninja"):
        r = work(w, "c", "meson setup me; ninja -C me; meson test -C me")
        w.exits(r, 0, "meson configures, builds and tests")
        w.same(outside(w, w.ws / "me/app"), "plain 42 42\n", "what meson built runs outside")
    else:
        skip(w, "meson is not installed")


@test("the compiler's cache is kept")
def cache(w):
    keeps(w, "c", "CCACHE_DIR", "ccache")
    if not tool(w, "ccache"):
        return
    files(w.ws, SOURCES)
    build = "ccache -z >/dev/null; rm -rf o; mkdir o; ccache gcc -c -o o/sum.o src/sum.c; ccache --print-stats"
    first, second = work(w, "c", build), work(w, "c", build)
    stats = [dict(l.split("\t", 1) for l in r.text.splitlines() if "\t" in l) for r in (first, second)]
    hits = [int(s.get("direct_cache_hit", -1)) + int(s.get("preprocessed_cache_hit", 0)) for s in stats]
    w.same(hits, [0, 1], "ccache misses in the first session and hits in the second", f"{first}\n{second}")


@test("a C++ program, a shared library and a debugger's symbols")
def shared(w):
    files(w.ws, {"a.cc": """\
        #include <iostream>
        #include <thread>
        #include <vector>
        extern "C" int answer();
        int main() {
            int n = 0;
            std::vector<std::thread> t;
            t.emplace_back([&] { n = answer(); });
            t[0].join();
            std::cout << n << std::endl;
            try { throw 7; } catch (int e) { return e; }
        }
        """, "b.c": "int answer(void) { return 42; }\n"})
    compiler = tool(w, "g++") or tool(w, "clang++")
    if not compiler:
        skip(w, "no C++ compiler is installed")
        return
    r = work(w, "c", 'cc -g -fPIC -shared -o libb.so b.c; "$0" -g -o a a.cc -L. -lb -Wl,-rpath,"$PWD" -pthread; ./a',
             compiler)
    w.same((r.code, r.text), (7, "42\n"), "threads, exceptions and rpath work", r)

"""go.py - profile go: build and test a module without the network."""
import os

from kit import LONG, files, keeps, outside, shows, skip, test, tool, work
from bounds import within

PROJECT = {
    "go.mod": "module example.com/app\n\ngo 1.18\n",
    "sum/sum.go": """\
        package sum

        // Of adds up its arguments, one goroutine each.
        func Of(v ...int) (s int) {
        	c := make(chan int)
        	for _, n := range v {
        		go func(n int) { c <- n }(n)
        	}
        	for range v {
        		s += <-c
        	}
        	return s
        }
        """,
    "sum/sum_test.go": """\
        package sum

        import "testing"

        func TestOf(t *testing.T) {
        	if got := Of(20, 22); got != 42 {
        		t.Fatal(got)
        	}
        }
        """,
    "main.go": """\
        package main

        import (
        	"os"
        	"strconv"

        	"example.com/app/sum"
        )

        func main() { os.Stdout.WriteString("go " + strconv.Itoa(sum.Of(40, 2)) + "\\n") }
        """,
}
WRITE = ["--allow", "write:."]


def go_env(w):
    """The environment with go in its PATH, or None."""
    env = {**w.env, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    for folder in ("", "/usr/local/go/bin", "/usr/lib/go/bin"):
        path = f"{folder}:{env['PATH']}" if folder else env["PATH"]
        if tool(w, "go") or os.access(f"{folder}/go", os.X_OK):
            return {**env, "PATH": path}
    return None


@test("a module is built and tested, and the cache is kept")
def module(w):
    env = go_env(w)
    if not env:
        skip(w, "go is not installed")
        return
    files(w.ws, PROJECT)
    vet = "" if LONG else "-vet=off"  # it compiles much of the library once more
    r = work(w, "go", f"go build -o app .; ./app; go test {vet} ./...", opts=WRITE, env=env)
    w.exits(r, 0, "go build and go test succeed")
    w.ok("go 42\n" in r.text and "ok  \texample.com/app/sum" in r.text, "they did their work", r)
    w.same(outside(w, w.ws / "app"), "go 42\n", "the program runs outside")
    r = work(w, "go", "go env GOPATH GOCACHE GOPROXY GOFLAGS; go build -x -o app . 2>&1 | grep -c compile || true; "
             f"go test {vet} ./... 2>&1", opts=WRITE, env=env)
    w.same(r.text.splitlines()[:5], ["/var/agent/state/go", "/var/agent/state/go/build", "off", "-mod=mod", "0"],
           "the next session compiles nothing again", r)
    w.ok("(cached)" in r.text, "and knows the result of the tests", r)
    files(w.ws, {"dep.go": 'package main\n\nimport _ "example.org/nowhere"\n'})
    r = work(w, "go", "go build ./...", opts=WRITE, env=env)
    w.ok(r.code not in (0, None) and within(r.seconds, 20), "a dependency that is not there fails at once", r)


@test("module cache and toolchains are shown, credentials are not")
def trees(w):
    keeps(w, "go", "GOCACHE", "go/build")
    shows(w, "go", ["go/pkg/mod/example.com/x@v1/x.go", "sdk/go1.22/bin/go", ".asdf/installs/golang/1/go/bin/go",
                    ".local/share/mise/installs/go/1/bin/go"],
          ["go/bin/tool", "go/src/private/x.go", ".netrc", ".config/go/env", ".ssh/id_rsa"])

"""rust.py - profile rust: cargo without the network, through rustup's proxies and without."""
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from kit import ROOT, files, give, hard_copy, keeps, outside, shows, skip, test, work

PROJECT = {
    "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n',
    "build.rs": 'fn main() { println!("cargo:rustc-env=MADE={}", 6 * 7); }\n',
    "src/lib.rs": """\
        pub fn sum(v: &[i32]) -> i32 {
            let v = v.to_vec();
            std::thread::spawn(move || v.iter().sum()).join().unwrap()
        }

        #[test]
        fn adds() {
            assert_eq!(sum(&[20, 22]), 42);
        }
        """,
    "src/main.rs": 'fn main() { println!("rust {} {}", app::sum(&[40, 2]), env!("MADE")); }\n',
}
OTHER = 65534  # nobody
WRITE = ["--allow", "write:."]


def rustup():
    """(directory of toolchains, rustup itself) of whoever runs the tests, or None."""
    homes = [os.environ.get("HOME", "/"), pwd.getpwuid(os.getuid()).pw_dir]
    tops = [Path(os.environ["RUSTUP_HOME"])] if "RUSTUP_HOME" in os.environ else []
    for top in tops + [Path(h) / ".rustup" for h in homes]:
        program = shutil.which("rustup", path=":".join([f"{top.parent}/.cargo/bin", os.environ.get("PATH", "")]))
        found = sorted(top.glob("toolchains/*/bin/cargo")) if os.access(top, os.R_OK | os.X_OK) else []
        if found and program:
            stable = [c for c in found if c.parts[-3].startswith("stable")] or found
            return stable[-1].parent.parent, Path(program)
    return None


def equip(w, chain, program):
    """A home with one toolchain in it, as rustup would have made it."""
    target = w.home / ".rustup/toolchains" / chain.name
    target.mkdir(parents=True)
    for part in ("bin", "lib", "libexec"):
        if (chain / part).is_dir():
            hard_copy(chain / part, target / part)
    settings = 'default_toolchain = "%s"\nprofile = "minimal"\nversion = "12"\n\n[overrides]\n' % chain.name
    (w.home / ".rustup/settings.toml").write_text(settings)
    for name in (".rustup/update-hashes", ".rustup/downloads", ".rustup/tmp", ".cargo/bin"):
        (w.home / name).mkdir(parents=True)
    shutil.copy2(program, w.home / ".cargo/bin/rustup")
    for name in ("cargo", "rustc", "rustdoc"):
        (w.home / ".cargo/bin" / name).symlink_to("rustup")
    for top in (".rustup", ".cargo"):
        subprocess.run(["chmod", "-R", "a+rX", w.home / top], check=True)
    return target


def crate(w, who):
    chain = equip(w, *rustup())
    files(w.ws, PROJECT)
    give(w, w.ws)
    env = {**w.env, "PATH": f"{w.home}/.cargo/bin:{w.env['PATH']}", "RUSTUP_HOME": str(w.home / ".rustup")}
    r = work(w, "rust", "cargo build --offline; cargo test --offline; cargo run -q --offline", opts=WRITE, env=env)
    w.exits(r, 0, f"{who}: cargo builds and tests through rustup")
    w.ok("rust 42 42\n" in r.text and "test adds ... ok" in r.text, f"{who}: it did its work", r)
    w.same(outside(w, w.ws / "target/debug/app"), "rust 42 42\n", f"{who}: the program runs outside")
    env = {**w.env, "PATH": f"{chain}/bin:{w.env['PATH']}"}
    r = work(w, "rust", "cargo build --offline --release; ./target/release/app", opts=WRITE, env=env)
    w.same((r.code, r.text), (0, "rust 42 42\n"), f"{who}: so does the toolchain without rustup", r)
    r = work(w, "rust", "rm -f ../home/.rustup/settings.toml; echo > ../home/.cargo/bin/evil", opts=WRITE)
    w.ok(r.code != 0 and (w.home / ".rustup/settings.toml").exists() and not (w.home / ".cargo/bin/evil").exists(),
         f"{who}: the toolchain stays as it is", r)


@test("cargo builds and tests a crate")
def cargo(w):
    if not rustup():
        skip(w, "no Rust toolchain that this user can read")
        return
    crate(w, "this user")
    if ROOT:  # an ordinary user may not be able to read the toolchain of root
        crate(w.at("/tmp", OTHER), "an ordinary user")


@test("toolchains are shown, tokens are not")
def trees(w):
    keeps(w, "rust", "CARGO_HOME", "rust/cargo")
    shows(w, "rust", [".rustup/toolchains/x/bin/rustc", ".cargo/bin/cargo", ".asdf/installs/rust/1/bin/rustc",
                      ".local/share/mise/installs/rust/1/x"],
          [".cargo/credentials.toml", ".cargo/config.toml", ".netrc", ".ssh/id_rsa"])

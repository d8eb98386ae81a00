Doctor on recorded machines.

  $ for h in debian13-user-6.12 ubuntu24.04-restricted default-container; do echo "== $h"; writ doctor --facts $SRC/tests/fixtures/hosts/$h.facts | sed '/^check\|^warn/d; /fix: .*upgrade/d; s/, [0-9]* days old, [0-9]* entries//'; done
  == debian13-user-6.12
  ready: tier A as uid 1000 (kernel 6.12.57+deb13-amd64, Landlock ABI 6)
  gap   groups          supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  advisory table of 2026-11-15
  == ubuntu24.04-restricted
  ready: tier B as uid 1000 (kernel 6.8.0-45-generic, Landlock ABI 4)
  gap   tier A          AppArmor keeps user namespaces from us
                        fix: install the package, which brings a profile for writ
  gap   groups          supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  gap   signals         this kernel's Landlock does not scope signals
                        fix: a kernel of 6.12 or later
  gap   bounding set    a user cannot empty it; no_new_privs leaves it without use
  advisory table of 2026-11-15
  == default-container
  ready: tier B as uid 0 (kernel 6.1.0-54-amd64, Landlock ABI 2)
  gap   tier A          no user namespaces here
  gap   signals         this kernel's Landlock does not scope signals
                        fix: a kernel of 6.12 or later
  gap   tracing         without Yama, only seccomp keeps it from your other processes
  gap   memory limit    data of each process; their sum is not bounded
  gap   cpu limit       no cgroup to put it in
  gap   process limit   root's processes are not counted without a cgroup
  advisory table of 2026-11-15

On this one, root and an ordinary user differ. The record is read back as it was written.

  $ writ doctor --record > me.facts && writ doctor --facts me.facts --record | cmp - me.facts && echo same
  same
  $ writ doctor --json | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["facts"]["uid"] >= 0, d["tier"] in ("A","B","none"))'
  True True
  $ echo garbage > bad.facts; writ doctor --facts bad.facts
  writ: bad.facts: line 1: expected 'writ-facts 1'
  [125]

A newer advisory table replaces the built-in one; an older or damaged one does not.

  $ printf 'writ-advisories 1\ndate 2020-01-01\n' > old.txt; writ doctor --update old.txt
  writ: old.txt: dated 2020-01-01, not after the built-in 2026-11-15
  [125]
  $ echo garbage > bad.txt; writ doctor --update bad.txt
  writ: bad.txt: line 1: expected 'writ-advisories 1'
  [125]
  $ writ doctor --update nowhere.txt
  writ: open nowhere.txt: No such file or directory
  [125]

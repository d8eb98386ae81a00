What holds on default-container, line by line.

  $ mkdir -p app/.git app/src app/logs && cd app
  $ writ explain --verbose --facts $SRC/tests/fixtures/hosts/default-container.facts $SRC/tests/golden/plan.writ
  RULE                                                                  HERE    BY                                                 COST
  allow write .                                                         exact   Landlock, create and attribute traps               creates ~2x
  allow write ./logs/*.txt                                              exact   Landlock, opens and creates mediated               opens there ~6x
  deny read **/.env                                                     exact   opens mediated; not base's system trees            opens ~6x
  deny write ./src                                                      exact   create trap                                        creates ~2x
  ask net https://search.example.com                                    exact   connect mediated                                   connects ~6x
  allow net https://api.example.com                                     exact   connect mediated, inspected                        TLS intercepted
  allow net https://api.example.com/v1/** methods=GET,POST              exact   connect mediated, inspected                        TLS intercepted
  allow net db.example.com:5432 private=10.0.0.0/8                      exact   connect mediated                                   connects ~6x
  allow net *.example.org:22                                            exact   connect mediated                                   connects ~6x
  secret API_KEY from env:API_KEY to https://api.example.com as bearer  exact   set outside, on verified TLS to its host only      TLS intercepted
  allow listen 8080                                                     exact   bind mediated                                      none
  allow unix /run/app.sock                                              exact   connect mediated                                   connects ~6x
  allow device /dev/dri/card0                                           partial Landlock here does not see ioctl on devices        none
  allow git https://git.example.com/acme/app.git fetch push=agent/*     exact   a helper outside speaks to that repository         none
  allow tool github/*                                                   none    not in this version: no tools are called           none
  allow kernel ptrace-own                                               exact   seccomp switch; only its own children              none
  env FOO                                                               exact   environment built from nothing                     none
  state cache                                                           exact   a directory outside the workspace                  none
  limit memory 2G                                                       partial data of each process; their sum is not bounded     none
  limit cpu 1.5                                                         none    no cgroup to put it in                             none
  limit pids 256                                                        none    root's processes are not counted without a cgroup  none
  limit disk 5G                                                         none    no quota without mounts of its own                 none
  limit session 2h                                                      exact   clock of the supervisor                            none
  limit idle 10m                                                        exact   clock of the supervisor                            none
  limit up 10M                                                          exact   counted on the way out                             none
  and 55 built-in lines (--all shows them)

  tier B as uid 0, kernel 6.1.0-54-amd64 (no user namespaces here); 9 of 18 guarantees hold; not fs.read (partial), fs.metadata (partial), ipc (partial), proc.see (partial), proc.signal, res.memory (partial), res.cpu, res.pids, res.disk
  6 lines cannot be enforced here: a run ends with 122 before it starts
  gap: signals: this kernel's Landlock does not scope signals; fix: a kernel of 6.12 or later
  gap: tracing: without Yama, only seccomp keeps it from your other processes

  GUARANTEE      HERE      BY
  fs.read        partial   Landlock here does not see ioctl on devices
  fs.write       exact     Landlock, attribute changes mediated
  fs.metadata    partial   names and sizes of other files can be seen
  net            exact     sockets filtered, connects mediated
  dns            exact     sockets filtered, connects mediated
  ipc            partial   UNIX sockets of the host can be reached
  proc.see       partial   the host's /proc lists all processes
  proc.signal    none      signals reach your other processes
  exec           exact     what is readable may run
  syscall        exact     seccomp allow-list
  res.memory     partial   data of each process; their sum is not bounded
  res.cpu        none      no cgroup to put it in
  res.pids       none      root's processes are not counted without a cgroup
  res.disk       none      no quota without mounts of its own
  res.time       exact     clock of the supervisor
  res.output     exact     counted by the supervisor
  cred           exact     none inside; environment built from nothing
  audit          exact     recorded outside the sandbox

  STEPS, in this order
   1  program       the sealed program is received and every offset in it checked
   2  limits        resource limits
   3  close-fds     every descriptor is closed but the session's socket
   4  drop-caps     every capability set empty, securebits locked, not dumpable
   5  no-new-privs  no set-id program raises privileges again
   6  landlock      the file rules once more, as a ruleset that each command restricts itself with
   7  seccomp       the allow-list of system calls
   8  verify        capability sets, no_new_privs and seccomp are read back from the kernel
   9  exec          per command: Landlock, the trap filter, then the program, by descriptor unless it is a script
  [122]

In a copy-on-write workspace:

  $ writ explain --workspace cow --facts $SRC/tests/fixtures/hosts/default-container.facts --allow write:. --deny 'read:**/.env' --limit disk=1G
  RULE                                       HERE    BY                                                COST
  workspace cow                              none    not in this version: no copy-on-write workspaces  none
  allow write .                              exact   Landlock, create and attribute traps              creates ~2x
  deny read **/.env                          exact   opens mediated; not base's system trees           opens ~6x
  limit disk 1G                              none    not in this version: no copy-on-write workspaces  none
  and 57 built-in lines (--all shows them)

  tier B as uid 0, kernel 6.1.0-54-amd64 (no user namespaces here); 10 of 18 guarantees hold; not fs.metadata (partial), ipc (partial), proc.see (partial), proc.signal, res.pids, res.disk; nothing asked of res.memory, res.cpu
  2 lines cannot be enforced here: a run ends with 122 before it starts
  gap: signals: this kernel's Landlock does not scope signals; fix: a kernel of 6.12 or later
  gap: tracing: without Yama, only seccomp keeps it from your other processes
  [122]

With nothing said at all:

  $ writ explain --facts $SRC/tests/fixtures/hosts/default-container.facts
  RULE                                       HERE    BY                                    COST
  allow write .                              exact   Landlock, create and attribute traps  creates ~2x
  and 57 built-in lines (--all shows them)

  tier B as uid 0, kernel 6.1.0-54-amd64 (no user namespaces here); 10 of 18 guarantees hold; not fs.metadata (partial), ipc (partial), proc.see (partial), proc.signal, res.pids; nothing asked of res.memory, res.cpu, res.disk
  gap: signals: this kernel's Landlock does not scope signals; fix: a kernel of 6.12 or later
  gap: tracing: without Yama, only seccomp keeps it from your other processes

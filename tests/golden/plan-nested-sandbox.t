What holds on nested-sandbox, line by line.

  $ mkdir -p app/.git app/src app/logs && cd app
  $ writ explain --verbose --facts $SRC/tests/fixtures/hosts/nested-sandbox.facts $SRC/tests/golden/plan.writ
  RULE                                                                  HERE    BY                                                          COST
  allow write .                                                         partial protected names that do not exist yet could be created      none
  allow write ./logs/*.txt                                              partial needs seccomp notification, which this place does not give  grant the whole directory
  deny read **/.env                                                     none    needs seccomp notification, which this place does not give  none
  deny write ./src                                                      none    needs seccomp notification, which this place does not give  none
  ask net https://search.example.com                                    partial Landlock limits TCP ports, not hosts, and not UDP           none
  allow net https://api.example.com                                     partial Landlock limits TCP ports, not hosts, and not UDP           none
  allow net https://api.example.com/v1/** methods=GET,POST              partial Landlock limits TCP ports, not hosts, and not UDP           none
  allow net db.example.com:5432 private=10.0.0.0/8                      partial Landlock limits TCP ports, not hosts, and not UDP           none
  allow net *.example.org:22                                            partial Landlock limits TCP ports, not hosts, and not UDP           none
  secret API_KEY from env:API_KEY to https://api.example.com as bearer  none    no way to look into connections here                        none
  allow listen 8080                                                     partial nothing keeps it on loopback here                           none
  allow unix /run/app.sock                                              none    Landlock here does not see UNIX sockets                     none
  allow device /dev/dri/card0                                           exact   Landlock                                                    none
  allow git https://git.example.com/acme/app.git fetch push=agent/*     none    nothing leads to the helper here                            none
  allow tool github/*                                                   none    not in this version: no tools are called                    none
  allow kernel ptrace-own                                               exact   seccomp switch; only its own children                       none
  env FOO                                                               exact   environment built from nothing                              none
  state cache                                                           exact   a directory outside the workspace                           none
  limit memory 2G                                                       partial data of each process; their sum is not bounded              none
  limit cpu 1.5                                                         none    no cgroup to put it in                                      none
  limit pids 256                                                        partial process limit of your user; your other processes count too  none
  limit disk 5G                                                         none    no quota without mounts of its own                          none
  limit session 2h                                                      exact   clock of the supervisor                                     none
  limit idle 10m                                                        exact   clock of the supervisor                                     none
  limit up 10M                                                          none    connections cannot be counted here                          none
  and 55 built-in lines (--all shows them)

  tier B as uid 65534, kernel 6.18.44-fc-v445 (no user namespaces here); 6 of 18 guarantees hold; not fs.read, fs.write, fs.metadata (partial), net, dns (partial), ipc, proc.see (partial), res.memory (partial), res.cpu, res.pids (partial), res.disk, cred
  19 lines cannot be enforced here: a run ends with 122 before it starts
  gap: sockets: a program of yours that listens on a socket inside what is granted can be spoken to
  gap: mediation: another program already listens on our system calls; fix: run outside that sandbox
  gap: bounding set: a user cannot empty it; no_new_privs leaves it without use
  gap: tracing: without Yama, only seccomp keeps it from your other processes

  GUARANTEE      HERE      BY
  fs.read        none      needs seccomp notification, which this place does not give
  fs.write       none      needs seccomp notification, which this place does not give
  fs.metadata    partial   names and sizes of other files can be seen
  net            none      nothing leads to the helper here
  dns            partial   only TCP ports can be limited here
  ipc            none      Landlock here does not see UNIX sockets
  proc.see       partial   the host's /proc lists all processes
  proc.signal    exact     Landlock scope
  exec           exact     what is readable may run
  syscall        exact     seccomp allow-list
  res.memory     partial   data of each process; their sum is not bounded
  res.cpu        none      no cgroup to put it in
  res.pids       partial   process limit of your user; your other processes count too
  res.disk       none      no quota without mounts of its own
  res.time       exact     clock of the supervisor
  res.output     exact     counted by the supervisor
  cred           none      no way to look into connections here
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

  $ writ explain --workspace cow --facts $SRC/tests/fixtures/hosts/nested-sandbox.facts --allow write:. --deny 'read:**/.env' --limit disk=1G
  RULE                                       HERE    BY                                                          COST
  workspace cow                              none    not in this version: no copy-on-write workspaces            none
  allow write .                              partial protected names that do not exist yet could be created      none
  deny read **/.env                          none    needs seccomp notification, which this place does not give  none
  limit disk 1G                              none    not in this version: no copy-on-write workspaces            none
  and 57 built-in lines (--all shows them)

  tier B as uid 65534, kernel 6.18.44-fc-v445 (no user namespaces here); 7 of 18 guarantees hold; not fs.read, fs.write, fs.metadata (partial), net (partial), dns (partial), ipc (partial), proc.see (partial), res.pids (partial), res.disk; nothing asked of res.memory, res.cpu
  4 lines cannot be enforced here: a run ends with 122 before it starts
  gap: sockets: a program of yours that listens on a socket inside what is granted can be spoken to
  gap: mediation: another program already listens on our system calls; fix: run outside that sandbox
  gap: bounding set: a user cannot empty it; no_new_privs leaves it without use
  gap: tracing: without Yama, only seccomp keeps it from your other processes
  [122]

With nothing said at all:

  $ writ explain --facts $SRC/tests/fixtures/hosts/nested-sandbox.facts
  RULE                                       HERE    BY                                                      COST
  allow write .                              partial protected names that do not exist yet could be created  none
  and 57 built-in lines (--all shows them)

  tier B as uid 65534, kernel 6.18.44-fc-v445 (no user namespaces here); 8 of 18 guarantees hold; not fs.write (partial), fs.metadata (partial), net (partial), dns (partial), ipc (partial), proc.see (partial), res.pids (partial); nothing asked of res.memory, res.cpu, res.disk
  1 line cannot be enforced here: a run ends with 122 before it starts
  gap: sockets: a program of yours that listens on a socket inside what is granted can be spoken to
  gap: mediation: another program already listens on our system calls; fix: run outside that sandbox
  gap: bounding set: a user cannot empty it; no_new_privs leaves it without use
  gap: tracing: without Yama, only seccomp keeps it from your other processes
  [122]

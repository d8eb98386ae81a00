What holds on cgroup-v2-not-delegated, line by line.

  $ mkdir -p app/.git app/src app/logs && cd app
  $ writ explain --verbose --facts $SRC/tests/fixtures/hosts/cgroup-v2-not-delegated.facts $SRC/tests/golden/plan.writ
  RULE                                                                  HERE    BY                                               COST
  allow write .                                                         exact   bind + Landlock, create trap                     creates ~2x
  allow write ./logs/*.txt                                              exact   bind + Landlock, opens and creates mediated      opens there ~6x
  deny read **/.env                                                     exact   mask, opens mediated; not base's system trees    opens ~6x
  deny write ./src                                                      exact   read-only bind, create trap                      creates ~2x
  ask net https://search.example.com                                    exact   per-name listener                                none, not inspected
  allow net https://api.example.com                                     exact   per-name listener, inspected                     TLS intercepted
  allow net https://api.example.com/v1/** methods=GET,POST              exact   per-name listener, inspected                     TLS intercepted
  allow net db.example.com:5432 private=10.0.0.0/8                      exact   per-name listener                                none, not inspected
  allow net *.example.org:22                                            exact   per-name listener                                none, not inspected
  secret API_KEY from env:API_KEY to https://api.example.com as bearer  exact   set outside, on verified TLS to its host only    TLS intercepted
  allow listen 8080                                                     exact   published on host loopback from its own network  none
  allow unix /run/app.sock                                              exact   only this socket is visible                      UNIX messages ~6x
  allow device /dev/dri/card0                                           exact   the device alone is bound                        none
  allow git https://git.example.com/acme/app.git fetch push=agent/*     exact   a helper outside speaks to that repository       none
  allow tool github/*                                                   none    not in this version: no tools are called         none
  allow kernel ptrace-own                                               exact   seccomp switch; only its own children            none
  env FOO                                                               exact   environment built from nothing                   none
  state cache                                                           exact   a directory outside the workspace                none
  limit memory 2G                                                       partial data of each process; their sum is not bounded   delegate the cgroup: systemctl edit user@.service, add Delegate=memory cpu pids
  limit cpu 1.5                                                         none    no cgroup to put it in                           delegate the cgroup: systemctl edit user@.service, add Delegate=memory cpu pids
  limit pids 256                                                        exact   process limit of its own user namespace          none
  limit disk 5G                                                         none    direct workspace: no quota                       none
  limit session 2h                                                      exact   clock of the supervisor                          none
  limit idle 10m                                                        exact   clock of the supervisor                          none
  limit up 10M                                                          exact   counted on the way out                           none
  and 55 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; not res.memory (partial), res.cpu, res.disk
  4 lines cannot be enforced here: a run ends with 122 before it starts
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them

  GUARANTEE      HERE      BY
  fs.read        exact     own mounts + Landlock
  fs.write       exact     own mounts + Landlock
  fs.metadata    exact     own mounts
  net            exact     own network namespace
  dns            exact     own network namespace
  ipc            exact     own IPC and network namespaces, connects mediated
  proc.see       exact     own /proc
  proc.signal    exact     own pid namespace
  exec           exact     what is readable may run
  syscall        exact     seccomp allow-list
  res.memory     partial   data of each process; their sum is not bounded
  res.cpu        none      no cgroup to put it in
  res.pids       exact     process limit of its own user namespace
  res.disk       none      direct workspace: no quota
  res.time       exact     clock of the supervisor
  res.output     exact     counted by the supervisor
  cred           exact     none inside; environment built from nothing
  audit          exact     recorded outside the sandbox

  STEPS, in this order
   1  namespaces    user, mount, pid, IPC, UTS and cgroup namespaces of its own
   2  id-map        one user and one group in the outer user namespace
   3  program       the sealed program is received and every offset in it checked
   4  root          only the paths that the policy names are mounted, on a skeleton of writ's own; the old root goes
   5  network       a network with loopback only, addresses for names, one listener per allowed name and port
   6  inner-userns  a second user namespace for the agent
   7  limits        resource limits
   8  close-fds     every descriptor is closed but the session's socket
   9  drop-caps     every capability set empty, securebits locked, not dumpable
  10  no-new-privs  no set-id program raises privileges again
  11  landlock      the file rules once more, as a ruleset that each command restricts itself with
  12  seccomp       the allow-list of system calls
  13  verify        capability sets, no_new_privs and seccomp are read back from the kernel
  14  exec          per command: Landlock, the trap filter, then the program, by descriptor unless it is a script
  [122]

In a copy-on-write workspace:

  $ writ explain --workspace cow --facts $SRC/tests/fixtures/hosts/cgroup-v2-not-delegated.facts --allow write:. --deny 'read:**/.env' --limit disk=1G
  RULE                                       HERE    BY                                                COST
  workspace cow                              none    not in this version: no copy-on-write workspaces  none
  allow write .                              exact   bind + Landlock, create trap                      creates ~2x
  deny read **/.env                          exact   mask, opens mediated; not base's system trees     opens ~6x
  limit disk 1G                              none    not in this version: no copy-on-write workspaces  none
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; not res.disk; nothing asked of res.memory, res.cpu
  2 lines cannot be enforced here: a run ends with 122 before it starts
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  [122]

With nothing said at all:

  $ writ explain --facts $SRC/tests/fixtures/hosts/cgroup-v2-not-delegated.facts
  RULE                                       HERE    BY                            COST
  allow write .                              exact   bind + Landlock, create trap  creates ~2x
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them

What holds on wsl2, line by line.

  $ mkdir -p app/.git app/src app/logs && cd app
  $ writ explain --verbose --facts $SRC/tests/fixtures/hosts/wsl2.facts $SRC/tests/golden/plan.writ
  RULE                                                                  HERE    BY                                                          COST
  allow write .                                                         partial protected names that do not exist yet could be created      none
  allow write ./logs/*.txt                                              partial needs seccomp notification, which this place does not give  grant the whole directory
  deny read **/.env                                                     none    needs seccomp notification, which this place does not give  none
  deny write ./src                                                      partial mask; the host's own rename would uncover it                none
  ask net https://search.example.com                                    exact   per-name listener                                           none, not inspected
  allow net https://api.example.com                                     exact   per-name listener, inspected                                TLS intercepted
  allow net https://api.example.com/v1/** methods=GET,POST              exact   per-name listener, inspected                                TLS intercepted
  allow net db.example.com:5432 private=10.0.0.0/8                      exact   per-name listener                                           none, not inspected
  allow net *.example.org:22                                            exact   per-name listener                                           none, not inspected
  secret API_KEY from env:API_KEY to https://api.example.com as bearer  exact   set outside, on verified TLS to its host only               TLS intercepted
  allow listen 8080                                                     exact   published on host loopback from its own network             none
  allow unix /run/app.sock                                              exact   only this socket is visible                                 none
  allow device /dev/dri/card0                                           exact   the device alone is bound                                   none
  allow git https://git.example.com/acme/app.git fetch push=agent/*     exact   a helper outside speaks to that repository                  none
  allow tool github/*                                                   none    not in this version: no tools are called                    none
  allow kernel ptrace-own                                               exact   seccomp switch; only its own children                       none
  env FOO                                                               exact   environment built from nothing                              none
  state cache                                                           exact   a directory outside the workspace                           none
  limit memory 2G                                                       exact   systemd scope                                               none
  limit cpu 1.5                                                         exact   systemd scope                                               none
  limit pids 256                                                        exact   process limit of its own user namespace                     none
  limit disk 5G                                                         none    direct workspace: no quota                                  none
  limit session 2h                                                      exact   clock of the supervisor                                     none
  limit idle 10m                                                        exact   clock of the supervisor                                     none
  limit up 10M                                                          exact   counted on the way out                                      none
  and 55 built-in lines (--all shows them)

  tier A as uid 1000, kernel 5.15.167.4-microsoft-standard-WSL2; 14 of 18 guarantees hold; not fs.read, fs.write, ipc (partial), res.disk
  6 lines cannot be enforced here: a run ends with 122 before it starts
  gap: sockets: a program of yours that listens on a socket inside what is granted can be spoken to
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  gap: WSL: Windows programs are hidden from the agent

  GUARANTEE      HERE      BY
  fs.read        none      needs seccomp notification, which this place does not give
  fs.write       none      needs seccomp notification, which this place does not give
  fs.metadata    exact     own mounts
  net            exact     own network namespace
  dns            exact     own network namespace
  ipc            partial   UNIX sockets below what is granted can be reached
  proc.see       exact     own /proc
  proc.signal    exact     own pid namespace
  exec           exact     what is readable may run
  syscall        exact     seccomp allow-list
  res.memory     exact     systemd scope
  res.cpu        exact     systemd scope
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
  11  seccomp       the allow-list of system calls
  12  verify        capability sets, no_new_privs and seccomp are read back from the kernel
  13  exec          per command: Landlock, the trap filter, then the program, by descriptor unless it is a script
  [122]

In a copy-on-write workspace:

  $ writ explain --workspace cow --facts $SRC/tests/fixtures/hosts/wsl2.facts --allow write:. --deny 'read:**/.env' --limit disk=1G
  RULE                                       HERE    BY                                                          COST
  workspace cow                              none    not in this version: no copy-on-write workspaces            none
  allow write .                              partial protected names that do not exist yet could be created      none
  deny read **/.env                          none    needs seccomp notification, which this place does not give  none
  limit disk 1G                              none    not in this version: no copy-on-write workspaces            none
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 5.15.167.4-microsoft-standard-WSL2; 12 of 18 guarantees hold; not fs.read, fs.write, ipc (partial), res.disk; nothing asked of res.memory, res.cpu
  4 lines cannot be enforced here: a run ends with 122 before it starts
  gap: sockets: a program of yours that listens on a socket inside what is granted can be spoken to
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  gap: WSL: Windows programs are hidden from the agent
  [122]

With nothing said at all:

  $ writ explain --facts $SRC/tests/fixtures/hosts/wsl2.facts
  RULE                                       HERE    BY                                                      COST
  allow write .                              partial protected names that do not exist yet could be created  none
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 5.15.167.4-microsoft-standard-WSL2; 13 of 18 guarantees hold; not fs.write (partial), ipc (partial); nothing asked of res.memory, res.cpu, res.disk
  1 line cannot be enforced here: a run ends with 122 before it starts
  gap: sockets: a program of yours that listens on a socket inside what is granted can be spoken to
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  gap: WSL: Windows programs are hidden from the agent
  [122]

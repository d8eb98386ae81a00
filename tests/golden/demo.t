The demonstration, on a recorded machine.

  $ WRIT=writ FACTS=$SRC/tests/fixtures/hosts/debian13-user-6.12.facts sh $SRC/tools/demo.sh | sed "/^check\|^advisory/d"

  1. What an agent may do, in lines a person can read aloud.
  \$\ cat\ agent\.writ (re)
  version 1
  allow write ./logs/*
  allow net   https://api.example.com/v1/** methods=GET,POST
  secret API_KEY from env:API_KEY to https://api.example.com as bearer
  deny  read  **/.env
  limit session 2h
  test deny net   https://api.example.com/admin
  test deny write ./src/main.c
  \$\ writ\ check\ agent\.writ (re)
  ok: 5 lines, 2 tests passed

  2. A mistake is an error with its place, never a rule that quietly does nothing.
  \$\ writ\ check\ wrong\.writ (re)
  wrong.writ:2:1: error: unknown word "alow"
      2 | alow  write ./logs/*
        | ^~~~
        = did you mean "allow"?

  3. What enforces each line on this machine. What cannot be enforced is refused by name.
  \$\ writ\ explain\ agent\.writ (re)
  RULE                                                                  HERE    BY                                             COST
  allow write ./logs/*                                                  exact   bind + Landlock, opens and creates mediated    opens there ~6x
  allow net https://api.example.com/v1/** methods=GET,POST              exact   per-name listener, inspected                   TLS intercepted
  secret API_KEY from env:API_KEY to https://api.example.com as bearer  exact   set outside, on verified TLS to its host only  TLS intercepted
  deny read **/.env                                                     exact   mask, opens mediated; not base's system trees  opens ~6x
  limit session 2h                                                      exact   clock of the supervisor                        none
  and 56 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them

  4. One question, and the line that decides it.
  \$\ writ\ why\ \-\-policy\ agent\.writ\ write\ /etc/passwd (re)
  denied: write /etc/passwd
  rule      the default: nothing allows it, so it is denied
  held by   own mounts + Landlock, exact (fs.write), tier A
  to allow  --allow 'write:/etc/passwd'
  \$\ writ\ why\ \-\-policy\ agent\.writ\ read\ \./src/\.env (re)
  denied: read ./src/.env
  rule      agent.writ:5: deny read **/.env
  held by   mask, opens mediated; not base's system trees, exact, tier A
  \$\ writ\ why\ \-\-policy\ agent\.writ\ net\ https://api\.example\.com/v1/items (re)
  allowed: net https://api.example.com/v1/items
  rule      agent.writ:3: allow net https://api.example.com/v1/** methods=GET,POST
  held by   per-name listener, inspected, exact, tier A

  5. What many people run today.
  \$\ cat\ run\.sh (re)
  docker run --privileged -v /var/run/docker.sock:/var/run/docker.sock agent:1.4
  \$\ writ\ lint\ \-\-quiet\ run\.sh (re)
  run.sh:1:12: error: The container runs privileged (docker run) [W101 privileged]
    fix: Remove `privileged` and grant the one device or capability that is missing; for builds inside, use a rootless builder.
  run.sh:1:28: error: The container engine's control socket is reachable: /var/run/docker.sock (docker run) [W104 docker-socket]
    fix: Remove the socket. For tests that need containers use a rootless engine inside a VM, or a filtering proxy that allows only the calls you need.

  6. What this machine can hold, for you.
  \$\ writ\ doctor (re)
  ready: tier A as uid 1000 (kernel 6.12.57+deb13-amd64, Landlock ABI 6)
  gap   groups          supplementary groups cannot be dropped without privilege: what is shown stays readable through them

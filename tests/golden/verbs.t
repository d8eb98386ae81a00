The verbs as a person uses them.

  $ mkdir -p app/.git app/logs app/src && cd app
  $ mkdir -p $XDG_STATE_HOME/writ && echo l-aaaaaaaaaaaaaaaaaaaaaaaaaa > $XDG_STATE_HOME/writ/realm
  $ facts="--facts $SRC/tests/fixtures/hosts/debian13-user-6.12.facts"

A first policy: right, missing a directory, wrong.

  $ printf 'version 1\nallow write ./logs/*\n' > p.writ
  $ writ check p.writ
  ok: 1 line
  $ printf 'version 1\nallow write /project/logs/*\n' > missing.writ
  $ writ check missing.writ
  missing.writ:2:13: error: /project/logs does not exist
      2 | allow write /project/logs/*
        |             ^~~~~~~~~~~~~~~
        = mkdir -p /project/logs   (or write ?/project/logs/* if it may be missing)
  [121]
  $ writ check --quiet p.writ
  $ printf 'version 1\nalow write /x\n' | writ check -
  -:2:1: error: unknown word "alow"
      2 | alow write /x
        | ^~~~
        = did you mean "allow"?
  [121]
  $ printf 'version 1\nalow write /x\n' | writ check --json -
  {"ok":false,"diagnostics":[{"level":"error","file":"-","line":2,"column":1,"text":"unknown word \"alow\"","hint":"did you mean \"allow\"?"}],"tests":0}
  [121]
  $ writ check nowhere.writ
  writ: open nowhere.writ: No such file or directory
  [125]
  $ writ check a b
  writ: check takes [FILE]; see writ help check
  [125]
  $ printf 'version   1 # comment\n\nallow   write  ./logs/*\n' | writ check --print -
  version 1
  allow write ./logs/*

Canonical capabilities.

  $ writ caps p.writ
  fs.read:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:$TMP/work/app/logs/*
  fs.write:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:$TMP/work/app/logs/*
  proc.exec:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:/**
  rt sha256:f9df86d8f83de2431484214f73209c0c1930e5182636cd143c402e62bfe54fd7
  digest sha256:[0-9a-f]{64} (re)
  $ writ caps --json --allow write:./logs/* --deny 'read:**/.env' --limit pids=10
  {"caps":["fs.read:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:$TMP/work/app/logs/*","fs.write:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:$TMP/work/app/logs/*","proc.exec:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:/**"],"limits":{"pids":10},"not":["fs.read:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:/**/.env/**","fs.write:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:/**/.env/**"],"prices":[],"require":{},"rt":"f9df86d8f83de2431484214f73209c0c1930e5182636cd143c402e62bfe54fd7"}
  $ writ caps --allow shell:read-only --allow net:allow=https://api.example.com --allow write:./logs/*
  http.request:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:https://api.example.com:443/**;m=*;q=any
  fs.read:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:$TMP/work/app/logs/*
  fs.write:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:$TMP/work/app/logs/*
  proc.exec:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:/**
  rt sha256:f9df86d8f83de2431484214f73209c0c1930e5182636cd143c402e62bfe54fd7
  digest sha256:[0-9a-f]{64} (re)

Explain and why.

  $ writ explain $facts p.writ
  RULE                                       HERE    BY                                           COST
  allow write ./logs/*                       exact   bind + Landlock, opens and creates mediated  opens there ~6x
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  $ writ explain $facts missing.writ
  missing.writ:2:13: warning: /project/logs does not exist here, so a run would be refused
      2 | allow write /project/logs/*
        |             ^~~~~~~~~~~~~~~
        = mkdir -p /project/logs   (or write ?/project/logs/* if it may be missing)
  RULE                                       HERE    BY                                           COST
  allow write /project/logs/*                missing bind + Landlock, opens and creates mediated  it does not exist: a run is refused
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  1 line cannot be enforced here: a run ends with 122 before it starts
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  [122]
  $ writ explain $facts --json p.writ | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["tier"], d["refused"], d["rules"][0]["level"], d["guarantees"]["fs.write"]["level"])'
  A 0 exact exact
  $ writ why $facts --policy p.writ write /etc/passwd
  denied: write /etc/passwd
  rule      the default: nothing allows it, so it is denied
  held by   own mounts + Landlock, exact (fs.write), tier A
  to allow  --allow 'write:/etc/passwd'
  [1]
  $ writ why $facts --policy missing.writ write /etc/passwd
  missing.writ:2:13: warning: /project/logs does not exist here, so a run would be refused
      2 | allow write /project/logs/*
        |             ^~~~~~~~~~~~~~~
        = mkdir -p /project/logs   (or write ?/project/logs/* if it may be missing)
  denied: write /etc/passwd
  rule      the default: nothing allows it, so it is denied
  held by   own mounts + Landlock, exact (fs.write), tier A
  to allow  --allow 'write:/etc/passwd'
  [1]
  $ writ why $facts --policy p.writ write ./logs/x
  allowed: write ./logs/x
  rule      p.writ:2: allow write ./logs/*
  held by   bind + Landlock, opens and creates mediated, exact, tier A
  $ writ why $facts --policy p.writ write /tmp/x
  allowed: write /tmp/x
  rule      base: every session has this directory fresh and for itself
  held by   own mounts + Landlock, exact (fs.write), tier A
  $ writ why $facts --allow write:. --deny 'read:**/.env' read ./sub/.env
  denied: read ./sub/.env
  rule      --deny:1: deny read **/.env
  held by   mask, opens mediated; not base's system trees, exact, tier A
  [1]
  $ writ why $facts --ask net:https://api.example.com net https://api.example.com
  ask: net https://api.example.com
  rule      --ask:1: ask net https://api.example.com
  held by   per-name listener, exact, tier A
  [3]
  $ writ why $facts --json --allow net:https://api.example.com/v1/** net https://api.example.com/v2
  {"answer":"deny","request":"http.request:l-aaaaaaaaaaaaaaaaaaaaaaaaaa:https://api.example.com:443/v2;m=GET;q=none","rule":null,"private":false,"guarantee":"net","level":"exact","by":"own network namespace","tier":"A"}
  [1]
  $ writ why $facts --policy p.writ frob x
  question:1:1: error: unknown verb "frob"
      1 | frob x
        | ^~~~
        = verbs: read write put exec net listen unix git device kernel tool agent shell
  [125]
  $ writ why
  writ: why needs a question, as in: writ why write /etc/passwd
  [125]

Adapters and tiers.

  $ writ explain $facts --tier B --allow write:.
  RULE                                       HERE    BY                                    COST
  allow write .                              exact   Landlock, create and attribute traps  creates ~2x
  and 57 built-in lines (--all shows them)

  tier B as uid 1000, kernel 6.12.57+deb13-amd64 (asked for); 12 of 18 guarantees hold; not fs.metadata (partial), proc.see (partial), res.pids (partial); nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  gap: bounding set: a user cannot empty it; no_new_privs leaves it without use
  gap: tracing: without Yama, only seccomp keeps it from your other processes
  $ writ explain $facts --adapter gvisor --allow write:.
  RULE                                       HERE    BY                            COST
  allow write .                              none    gvisor: not in this version   none
  and 57 built-in lines (--all shows them)

  adapter gvisor; 0 of 18 guarantees hold; not fs.read, fs.write, fs.metadata, net, dns, ipc, proc.see, proc.signal, exec, syscall, res.memory, res.cpu, res.pids, res.disk, res.time, res.output, cred, audit
  gvisor: not in this version
  1 line cannot be enforced here: a run ends with 122 before it starts
  [122]
  $ writ explain -v $facts --adapter docker --allow write:. | tail -n 18
  fs.read        none      docker: not in this version
  fs.write       none      docker: not in this version
  fs.metadata    none      docker: not in this version
  net            none      docker: not in this version
  dns            none      docker: not in this version
  ipc            none      docker: not in this version
  proc.see       none      docker: not in this version
  proc.signal    none      docker: not in this version
  exec           none      docker: not in this version
  syscall        none      docker: not in this version
  res.memory     none      docker: not in this version
  res.cpu        none      docker: not in this version
  res.pids       none      docker: not in this version
  res.disk       none      docker: not in this version
  res.time       none      docker: not in this version
  res.output     none      docker: not in this version
  cred           none      docker: not in this version
  audit          none      docker: not in this version
  $ writ explain --tier C
  writ: there are the tiers A and B, not "C"
  [125]
  $ writ explain --adapter nope $facts
  writ: no adapter "nope"; host crun runc gvisor podman docker qemu firecracker wasm
  [125]

Where there is no workspace, nothing pretends to have one.

  $ (cd / && writ explain $facts)
  writ: no workspace: a system directory is never a workspace
  RULE                                       HERE    BY                            COST
  and 56 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  $ (cd / && writ explain $facts --allow write:.)
  --allow:1:7: error: there is no workspace here: your home, / and system directories are never one
      1 | write:.
        |       ^
        = cd into a project, or name the directory itself
  [121]

Profiles.

  $ writ profile list
  base             What every session has, unless a policy says `use none`
  browser          A headless browser
  c                Build and test a C or C++ project
  ci               A build job
  claude           Claude Code on one project
  codex            Codex on one project
  git-commit       Work on a checkout and commit
  go               Go with its module and build caches kept between sessions
  mcp-server       A tool server spoken to over its standard input and output
  node             Node.js with its version managers to read and a package cache kept between sessions
  python           Python with its version managers to read and a package cache kept between sessions
  rust             Rust with its toolchains to read and caches kept between sessions
  shell-read-only  Run anything that is readable, look at the workspace, write only the session's own /tmp and HOME
  $ writ profile show shell-read-only
  version 1
  # Run anything that is readable, look at the workspace, write only the session's own /tmp and HOME.
  allow shell read-only
  $ writ profile show nope
  writ: no profile "nope"; writ profile list shows the names
  [125]
  $ writ explain $facts --profile claude
  RULE                                       HERE    BY                                       COST
  allow write .                              exact   bind + Landlock, create trap             creates ~2x
  allow net https://api.anthropic.com        exact   per-name listener                        none, not inspected
  allow net https://platform.claude.com      exact   per-name listener                        none, not inspected
  state claude                               exact   a directory outside the workspace        none
  limit pids 2048                            exact   process limit of its own user namespace  none
  and 61 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them

Help says what to type.

  $ writ
  writ: run an agent with least privilege, and prove which boundary held

  usage: writ VERB [OPTIONS] [OPERANDS]

    run         run a command with exactly what the policy grants
    session     a sandbox that stays
    spawn       inside a session: start an agent of its policy
    ps          sessions that are running
    stop        end a session and everything in it
    allow       grant one more thing to a running session
    revoke      take a live grant back
    net         what a session did on the network
    audit       what happened, and is the record of it whole?
    key         the keys that sign logs and tokens
    witness     remember what logs of others have shown, or have yours remembered
    attest      which boundaries of a session held, and who says so
    signer      let another user's program hold the keys and the log
    check       is this policy right, and do its tests pass?
    caps        the policy as canonical capabilities
    explain     what enforces each line on this machine, and what cannot be
    why         may it do this? which line says so, and what enforces it?
    lint        dangerous settings in policies and in other tools' files
    doctor      what this machine can enforce, for this user
    conform     try every known way out of a sandbox, and say which ones work
    init        write a first policy for this project
    trust       let this workspace's agent.writ widen your policy
    profile     profiles shipped with writ
    token       authority that can be given away, narrowed, and taken back
    completion  shell completion
    help        help for one verb
    version     the version

  writ help VERB says more. A first look: writ explain --allow write:./logs/*
  $ writ help why
  writ why: may it do this? which line says so, and what enforces it?

  usage: writ why [OPTIONS] VERB OBJECT | SESSION#N

  Answers one question and names the rule, or the default, that decides; with
  --token, the hop that dropped it. SESSION#N is something that was refused in a
  session, SESSION#hN a hint. Ends with 0 if it is allowed, 1 if it is denied
  and 3 if a person would be asked.

    -h, --help                 show this help
    -p, --policy FILE          rules from this policy file; may be repeated
    -P, --profile NAME         rules from a shipped profile; may be repeated
        --allow RULE           allow this, as in write:./logs/*
        --ask RULE             ask a person before this
        --deny RULE            deny this, whatever else allows it
        --limit KEY=VALUE      a limit, as in memory=2G
        --secret SPEC          NAME from SOURCE to URL as FORM
    -e, --env NAME[=VALUE]     pass or set a variable
        --var NAME=VALUE       what $NAME means in the paths of a policy
        --workspace MODE       direct or cow
    -C, --cwd DIR              act as if started in this directory
        --adapter NAME         plan for this engine instead of the host
        --tier A|B             use this tier instead of the best one
        --facts FILE           use recorded facts instead of this machine's
        --json                 output for machines
        --agent NAME           ask on behalf of this delegated agent
        --token FILE           what this chain of tokens allows is the policy; - is standard input

  example: writ why write /etc/passwd
  $ writ chek
  writ: no verb "chek"; did you mean check?
  [125]
  $ writ check --polcy x
  writ: check has no option --polcy; did you mean --policy?
  [125]
  $ writ check --policy
  writ: --policy needs FILE
  [125]
  $ writ --version
  writ 0.1.0

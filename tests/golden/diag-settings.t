Mistakes in the other statements.

  $ check() { { echo version 1; cat; } | writ check -; }

Secrets:

  $ check <<'E'
  > secret TOKEN from env:TOKEN to https://api.example.com
  > secret TOKEN from env:TOKEN for https://api.example.com as bearer
  > secret TOKEN from vault:TOKEN to https://api.example.com as bearer
  > secret TOKEN from env:TOKEN to http://api.example.com as bearer
  > secret TOKEN from env:TOKEN to https://api.example.com as cookie
  > secret my-token from env:TOKEN to https://api.example.com as bearer
  > E
  -:2:32: error: more is needed for "secret"
      2 | secret TOKEN from env:TOKEN to https://api.example.com
        |                                ^~~~~~~~~~~~~~~~~~~~~~~
        = secret NAME from SOURCE to URL as FORM
  -:3:29: error: expected "to"
      3 | secret TOKEN from env:TOKEN for https://api.example.com as bearer
        |                             ^~~
        = secret NAME from SOURCE to URL as FORM
  -:4:19: error: "vault:TOKEN" is not a source
      4 | secret TOKEN from vault:TOKEN to https://api.example.com as bearer
        |                   ^~~~~~~~~~~
        = env:NAME, file:PATH, "cmd:PROGRAM ARGS" or keyring:NAME
  -:5:32: error: a secret goes to one https host only
      5 | secret TOKEN from env:TOKEN to http://api.example.com as bearer
        |                                ^~~~~~~~~~~~~~~~~~~~~~
        = https://host or https://host/path/**
  -:6:59: error: "cookie" is not a form
      6 | secret TOKEN from env:TOKEN to https://api.example.com as cookie
        |                                                           ^~~~~~
        = bearer, basic, header:NAME, query:NAME or env
  -:7:8: error: "my-token" is not a name
      7 | secret my-token from env:TOKEN to https://api.example.com as bearer
        |        ^~~~~~~~
        = as in GITHUB_TOKEN
  [121]

A secret with two sources:

  $ check <<'E'
  > secret TOKEN from env:A to https://api.example.com as bearer
  > secret TOKEN from env:B to https://api.example.org as bearer
  > E
  -:3:8: error: secret TOKEN has two sources
      3 | secret TOKEN from env:B to https://api.example.org as bearer
        |        ^~~~~
  [121]

A command has blanks, so it needs quotes:

  $ check <<'E'
  > secret TOKEN from cmd:pass show token to https://api.example.com as bearer
  > E
  -:2:66: error: too many words for "secret"
      2 | secret TOKEN from cmd:pass show token to https://api.example.com as bearer
        |                                                                  ^~
        = put a source with blanks in quotes
  [121]

Limits and their units:

  $ check <<'E'
  > limit memory 2GB
  > limit session 90
  > limit pids 1K
  > limit cpu 0
  > limit disk 99999999999999999999
  > limit idle 1h1h
  > E
  -:2:14: error: "2GB" is not a limit for memory
      2 | limit memory 2GB
        |              ^~~
        = for example: limit memory 2G
  -:3:15: error: "90" is not a limit for session
      3 | limit session 90
        |               ^~
        = for example: limit session 2h
  -:4:12: error: "1K" is not a limit for pids
      4 | limit pids 1K
        |            ^~
        = for example: limit pids 256
  -:5:11: error: "0" is not a limit for cpu
      5 | limit cpu 0
        |           ^
        = for example: limit cpu 1.5 (cores) or limit cpu 150%
  -:6:12: error: "99999999999999999999" is not a limit for disk
      6 | limit disk 99999999999999999999
        |            ^~~~~~~~~~~~~~~~~~~~
        = for example: limit disk 5G
  -:7:12: error: "1h1h" is not a limit for idle
      7 | limit idle 1h1h
        |            ^~~~
        = for example: limit idle 15m
  [121]

Variables:

  $ check <<'E'
  > env 2FA
  > env MY-VAR
  > env LC_*=C
  > E
  -:2:5: error: "2FA" is not a variable's name
      2 | env 2FA
        |     ^~~
        = env NAME, env NAME=VALUE or env LC_*
  -:3:5: error: "MY-VAR" is not a variable's name
      3 | env MY-VAR
        |     ^~~~~~
        = env NAME, env NAME=VALUE or env LC_*
  -:4:5: error: "LC_*" is not a variable's name
      4 | env LC_*=C
        |     ^~~~~~
        = env NAME, env NAME=VALUE or env LC_*
  [121]

Isolation, workspace, level, state:

  $ check <<'E'
  > isolation vm
  > isolation > vm
  > isolation >= vmm
  > workspace copy
  > net level high
  > state a/b
  > E
  -:2:11: error: more is needed for "isolation"
      2 | isolation vm
        |           ^~
        = isolation >= process, gvisor or vm
  -:3:11: error: expected >=
      3 | isolation > vm
        |           ^
        = isolation >= vm
  -:4:14: error: "vmm" is not a value for isolation
      4 | isolation >= vmm
        |              ^~~
        = did you mean "vm"?
  -:5:11: error: "copy" is not a value for workspace
      5 | workspace copy
        |           ^~~~
        = did you mean "cow"?
  -:6:11: error: "high" is not a value for net
      6 | net level high
        |           ^~~~
        = hosts, hosts+dns, signed
  -:7:7: error: a state's name is one plain word
      7 | state a/b
        |       ^~~
        = as in state cache
  [121]

Guarantees:

  $ check <<'E'
  > require net
  > require net=high
  > accept network=none
  > E
  -:2:9: error: "net" needs a level
      2 | require net
        |         ^~~
        = net=exact, stricter, partial or none
  -:3:9: error: unknown level "high"
      3 | require net=high
        |         ^~~~~~~~
        = exact, stricter, partial or none
  -:4:8: error: unknown guarantee "network"
      4 | accept network=none
        |        ^~~~~~~~~~~~
        = fs.read fs.write fs.metadata net dns ipc proc.see proc.signal exec syscall res.memory res.cpu res.pids res.disk res.time res.output cred audit
  [121]

Only sockets are dangerous:

  $ check <<'E'
  > danger tcp localhost:2375
  > E
  -:2:8: error: only sockets can be dangerous this way
      2 | danger tcp localhost:2375
        |        ^~~
        = danger unix PATH
  [121]

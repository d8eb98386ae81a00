Mistakes in words: what was meant is usually one letter away.

  $ check() { { echo version 1; cat; } | writ check -; }

A statement:

  $ check <<'E'
  > alow write /x
  > E
  -:2:1: error: unknown word "alow"
      2 | alow write /x
        | ^~~~
        = did you mean "allow"?
  [121]

A verb:

  $ check <<'E'
  > allow reed /usr
  > E
  -:2:7: error: unknown verb "reed"
      2 | allow reed /usr
        |       ^~~~
        = did you mean "read"?
  [121]

A verb that nobody could guess:

  $ check <<'E'
  > allow teleport /usr
  > E
  -:2:7: error: unknown verb "teleport"
      2 | allow teleport /usr
        |       ^~~~~~~~
        = verbs: read write put exec net listen unix git device kernel tool agent shell
  [121]

A qualifier:

  $ check <<'E'
  > allow net api.example.com method=GET
  > E
  -:2:27: error: "net" does not take "method"
      2 | allow net api.example.com method=GET
        |                           ^~~~~~~~~~
        = did you mean "methods"?
  [121]

A qualifier of another verb:

  $ check <<'E'
  > allow read /usr methods=GET
  > E
  -:2:17: error: "read" does not take "methods"
      2 | allow read /usr methods=GET
        |                 ^~~~~~~~~~~
        = one object per rule
  [121]

A rule without its effect:

  $ check <<'E'
  > write /usr
  > E
  -:2:1: error: unknown word "write"
      2 | write /usr
        | ^~~~~
        = say who decides first: allow, ask or deny
  [121]

A limit:

  $ check <<'E'
  > limit memmory 2G
  > E
  -:2:7: error: unknown limit "memmory"
      2 | limit memmory 2G
        |       ^~~~~~~
        = did you mean "memory"?
  [121]

A profile:

  $ check <<'E'
  > use pyton
  > E
  -:2:5: error: no profile "pyton"
      2 | use pyton
        |     ^~~~~
        = did you mean "python"?
  [121]

A protected name:

  $ check <<'E'
  > open .git/hook
  > E
  -:2:6: error: ".git/hook" is not a protected name
      2 | open .git/hook
        |      ^~~~~~~~~
        = did you mean ".git/hooks"?
  [121]

A kernel switch, a bundle, a guarantee and a level:

  $ check <<'E'
  > allow kernel io-uring
  > allow shell readonly
  > require fs.rite=exact
  > accept net=parital
  > E
  -:2:14: error: unknown kernel switch "io-uring"
      2 | allow kernel io-uring
        |              ^~~~~~~~
        = did you mean "io_uring"?
  -:3:13: error: unknown shell level
      3 | allow shell readonly
        |             ^~~~~~~~
        = did you mean "read-only"?
  -:4:9: error: unknown guarantee "fs.rite"
      4 | require fs.rite=exact
        |         ^~~~~~~~~~~~~
        = did you mean "fs.write"?
  -:5:8: error: unknown level "parital"
      5 | accept net=parital
        |        ^~~~~~~~~~~
        = exact, stricter, partial or none
  [121]

An effect in a test:

  $ check <<'E'
  > test alow read /usr
  > E
  -:2:6: error: expected allow, ask or deny
      2 | test alow read /usr
        |      ^~~~
        = did you mean "allow"?
  [121]

Nothing is near, so the choices are listed:

  $ check <<'E'
  > frobnicate
  > require everything=exact
  > limit luck 3
  > E
  -:2:1: error: unknown word "frobnicate"
      2 | frobnicate
        | ^~~~~~~~~~
        = statements begin with version use allow ask deny open env secret limit workspace state isolation require accept danger agent test net
  -:3:9: error: unknown guarantee "everything"
      3 | require everything=exact
        |         ^~~~~~~~~~~~~~~~
        = fs.read fs.write fs.metadata net dns ipc proc.see proc.signal exec syscall res.memory res.cpu res.pids res.disk res.time res.output cred audit
  -:4:7: error: unknown limit "luck"
      4 | limit luck 3
        |       ^~~~
        = memory cpu pids disk files command session idle output up down requests
  [121]

Mistakes on a command line. The place is in the option's value.

  $ check() { { echo version 1; cat; } | writ check -; }

A verb, and no object:

  $ writ check --allow wrte:./logs
  --allow:1:1: error: unknown verb "wrte"
      1 | wrte:./logs
        | ^~~~
        = did you mean "write"?
  [121]
  $ writ check --allow write:
  --allow:1:7: error: "write" needs a path
      1 | write:
        |       ^
  [121]

A qualifier:

  $ writ check --allow 'net:https://api.example.com;method=GET'
  --allow:1:29: error: "net" does not take "method"
      1 | net:https://api.example.com;method=GET
        |                             ^~~~~~~~~~
        = did you mean "methods"?
  [121]

A limit, a secret, a variable, a profile:

  $ writ check --limit memory=lots
  --limit:1:8: error: "lots" is not a limit for memory
      1 | memory=lots
        |        ^~~~
        = for example: limit memory 2G
  [121]
  $ writ check --secret 'TOKEN from env:TOKEN'
  --secret:1:12: error: more is needed for "secret"
      1 | TOKEN from env:TOKEN
        |            ^~~~~~~~~
        = secret NAME from SOURCE to URL as FORM
  [121]
  $ writ check --env 2FA
  --env:1:1: error: "2FA" is not a variable's name
      1 | 2FA
        | ^~~
        = env NAME, env NAME=VALUE or env LC_*
  [121]
  $ writ check --profile pyton
  --profile:1:1: error: no profile "pyton"
      1 | pyton
        | ^~~~~
        = did you mean "python"?
  [121]

More than one rule:

  $ writ check --allow 'read ./a ./b'
  --allow:1:10: error: "read" does not take "./b"
      1 | read ./a ./b
        |          ^~~
        = one object per rule
  [121]

The token's form in a file:

  $ check <<'E'
  > allow write:./logs/* count=1
  > E
  -:2:7: error: unknown verb "write:./logs/*"
      2 | allow write:./logs/* count=1
        |       ^~~~~~~~~~~~~~
        = in a file, write the verb and the object as two words
  [121]

A question that is none:

  $ writ why fly /moon
  question:1:1: error: unknown verb "fly"
      1 | fly /moon
        | ^~~
        = verbs: read write put exec net listen unix git device kernel tool agent shell
  [125]
  $ writ why write
  question:1:1: error: "write" needs a path
      1 | write
        | ^~~~~
  [125]

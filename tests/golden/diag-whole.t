Mistakes that only show when all lines are seen.

  $ check() { { echo version 1; cat; } | writ check -; }

The same thing twice:

  $ check <<'E'
  > allow read /usr/share
  > allow read /usr/share/**
  > limit pids 3
  > limit pids 4
  > E
  -:3:1: error: this says the same as line 2
      3 | allow read /usr/share/**
        | ^~~~~~~~~~~~~~~~~~~~~~~~
        = keep one of them
  -:5:1: error: this says the same as line 4
      5 | limit pids 4
        | ^~~~~~~~~~~~
        = keep one of them
  [121]

Lines that can never match:

  $ check <<'E'
  > deny read /usr/share
  > allow read /usr/share/dict
  > ask net api.example.com
  > allow net https://api.example.com/v1
  > E
  -:3:1: error: this can never match: line 2 denies all of it
      3 | allow read /usr/share/dict
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~
        = deny beats ask beats allow, wherever they stand
  -:5:1: error: this can never match: line 4 asks for all of it
      5 | allow net https://api.example.com/v1
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = deny beats ask beats allow, wherever they stand
  [121]

Tests that fail say which line decided:

  $ check <<'E'
  > allow net https://api.example.com/v1/** methods=GET
  > test deny net https://api.example.com/v1/x
  > test allow net https://api.example.com/v1/x methods=POST
  > test ask read /usr/bin/env
  > test deny write /tmp/x
  > E
  -:3:1: error: test failed: net https://api.example.com/v1/x is allowed
      3 | test deny net https://api.example.com/v1/x
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = because of -:2: allow net https://api.example.com/v1/** methods=GET
  -:4:1: error: test failed: net https://api.example.com/v1/x methods=POST is denied
      4 | test allow net https://api.example.com/v1/x methods=POST
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = nothing allows it, and the default is to deny
  -:5:1: error: test failed: read /usr/bin/env is allowed
      5 | test ask read /usr/bin/env
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~
        = because of base:6: allow read /usr
  -:6:1: error: test failed: write /tmp/x is allowed
      6 | test deny write /tmp/x
        | ^~~~~~~~~~~~~~~~~~~~~~
        = every session has this directory for itself
  [121]

Tests ask about one thing:

  $ check <<'E'
  > test allow read /usr/*
  > test allow net *
  > test deny exec no-such-program
  > test allow git https://git.example.com/acme/app.git
  > E
  -:2:17: error: no wildcards here: name one path
      2 | test allow read /usr/*
        |                 ^~~~~~
  -:3:16: error: ask about one host
      3 | test allow net *
        |                ^
        = as in why net https://example.com/
  -:4:16: error: no program "no-such-program" in PATH
      4 | test deny exec no-such-program
        |                ^~~~~~~~~~~~~~~
        = give its path
  -:5:16: error: what may it do there?
      5 | test allow git https://git.example.com/acme/app.git
        |                ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = add fetch, push=BRANCH or both
  [121]

An agent cannot have more than its parent:

  $ check <<'E'
  > allow write /usr/share
  > allow net https://api.example.com methods=GET
  > limit session 1h
  > agent coder
  >     allow write /usr/share/dict
  >     allow write /usr/lib
  >     allow net https://api.example.com
  >     limit session 2h
  > E
  -:7:5: error: an agent cannot have more than its parent, and no rule of the parent covers this
      7 |     allow write /usr/lib
        |     ^~~~~~~~~~~~~~~~~~~~
  -:8:5: error: an agent cannot have more than its parent, and no rule of the parent covers this
      8 |     allow net https://api.example.com
        |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
  -:9:5: error: an agent cannot have more than its parent, and no rule of the parent covers this
      9 |     limit session 2h
        |     ^~~~~~~~~~~~~~~~
  [121]

What cannot stand in a block, a block twice, and an empty one:

  $ check <<'E'
  > allow read /usr
  > agent coder
  >     allow read /usr
  >     use python
  > agent coder
  >     allow read /usr
  > agent tester
  > E
  -:5:5: error: "use" cannot stand in an agent block
      5 |     use python
        |     ^~~
  -:6:7: error: agent coder is described twice
      6 | agent coder
        |       ^~~~~
  -:8:7: error: agent tester has no rules
      8 | agent tester
        |       ^~~~~~
        = indent the lines that belong to it
  [121]

Indentation without a block; a misspelt head does not make its block wrong:

  $ check <<'E'
  >     allow read /usr
  > agnet coder
  >     allow read /usr
  > E
  -:2:5: error: unexpected indentation
      2 |     allow read /usr
        |     ^~~~~
        = only what belongs to an agent block is indented
  -:3:1: error: unknown word "agnet"
      3 | agnet coder
        | ^~~~~
        = did you mean "agent"?
  [121]

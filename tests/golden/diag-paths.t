Mistakes in paths.

  $ check() { { echo version 1; cat; } | writ check -; }
  $ mkdir src; touch README.md src/main.c

Without a beginning:

  $ check <<'E'
  > allow read src
  > E
  -:2:12: error: is "src" below the workspace? then write ./src
      2 | allow read src
        |            ^~~
        = paths begin with ./ ~/ / or $VAR
  [121]

Missing, as a directory, as a file, and behind a wildcard:

  $ check <<'E'
  > allow write ./build
  > allow read ./data/sales.csv
  > allow write ./cache/*
  > E
  -:2:13: error: $TMP/work/build does not exist
      2 | allow write ./build
        |             ^~~~~~~
        = mkdir -p $TMP/work/build   (or write ?./build if it may be missing)
  -:3:12: error: $TMP/work/data/sales.csv does not exist
      3 | allow read ./data/sales.csv
        |            ^~~~~~~~~~~~~~~~
        = create $TMP/work/data/sales.csv   (or write ?./data/sales.csv if it may be missing)
  -:4:13: error: $TMP/work/cache does not exist
      4 | allow write ./cache/*
        |             ^~~~~~~~~
        = mkdir -p $TMP/work/cache   (or write ?./cache/* if it may be missing)
  [121]

Not here, but said to be optional:

  $ check <<'E'
  > allow write ?./build
  > E
  ok: 1 line

A file where a directory is needed:

  $ check <<'E'
  > allow read ./README.md/*
  > E
  -:2:12: error: $TMP/work/README.md is a file, not a directory
      2 | allow read ./README.md/*
        |            ^~~~~~~~~~~~~
  [121]

Neither file nor directory:

  $ check <<'E'
  > allow read /dev/null
  > E
  -:2:12: error: every session has its own /proc, /dev and /sys
      2 | allow read /dev/null
        |            ^~~~~~~~~
        = devices: allow device PATH; sockets: allow unix PATH
  [121]

Stars that say too much:

  $ check <<'E'
  > allow read ./a*b*.c
  > allow read ./src/**/*.c
  > deny read ./**/a/**/b
  > E
  -:2:12: error: more than one * in "a*b*.c"
      2 | allow read ./a*b*.c
        |            ^~~~~~~~
        = ** stands alone between slashes
  -:3:12: error: ** inside a path works in deny only
      3 | allow read ./src/**/*.c
        |            ^~~~~~~~~~~~
        = allow the directory and deny what must not be in it
  -:4:11: error: only one ** before the end of a path
      4 | deny read ./**/a/**/b
        |           ^~~~~~~~~~~
  [121]

Segments that lead elsewhere:

  $ check <<'E'
  > allow read ./src/../README.md
  > allow read ./src//main.c
  > E
  -:2:12: error: ".." inside a path
      2 | allow read ./src/../README.md
        |            ^~~~~~~~~~~~~~~~~~
        = write the path it leads to
  -:3:12: error: empty segment (//) in a path
      3 | allow read ./src//main.c
        |            ^~~~~~~~~~~~~
  [121]

A variable that the operator did not set:

  $ check <<'E'
  > allow read $CACHE/pip
  > E
  -:2:12: error: no variable $CACHE
      2 | allow read $CACHE/pip
        |            ^~~~~~~~~~
        = variables are set by the operator: --var NAME=VALUE
  [121]

No workspace: your home is never one.

  $ cd; check <<'E'
  > allow write .
  > E
  -:2:13: error: there is no workspace here: your home, / and system directories are never one
      2 | allow write .
        |             ^
        = cd into a project, or name the directory itself
  [121]
  $ cd $OLDPWD

Wildcards where one thing is meant:

  $ check <<'E'
  > allow unix /run/*.sock
  > allow device /dev/dri/*
  > E
  -:2:12: error: no wildcards here: name one path
      2 | allow unix /run/*.sock
        |            ^~~~~~~~~~~
  -:3:14: error: no wildcards here: name one path
      3 | allow device /dev/dri/*
        |              ^~~~~~~~~~
  [121]

Optional things that are no paths:

  $ check <<'E'
  > allow net ?api.example.com
  > E
  -:2:11: error: only paths and programs can be optional
      2 | allow net ?api.example.com
        |           ^~~~~~~~~~~~~~~~
  [121]

Several mistakes, one run, and no error that only follows from another.

  $ check() { { echo version 1; cat; } | writ check -; }

Each line is judged by itself:

  $ check <<'E'
  > use pyton
  > allow wite .
  > allow net api.example.com method=GET
  > limit memory 2GB
  > test deny read /etc/shadow
  > E
  -:2:5: error: no profile "pyton"
      2 | use pyton
        |     ^~~~~
        = did you mean "python"?
  -:3:7: error: unknown verb "wite"
      3 | allow wite .
        |       ^~~~
        = did you mean "write"?
  -:4:27: error: "net" does not take "method"
      4 | allow net api.example.com method=GET
        |                           ^~~~~~~~~~
        = did you mean "methods"?
  -:5:14: error: "2GB" is not a limit for memory
      5 | limit memory 2GB
        |              ^~~
        = for example: limit memory 2G
  [121]

A broken line does not make a test fail:

  $ check <<'E'
  > allow net htps://api.example.com
  > test allow net https://api.example.com
  > E
  -:2:11: error: unknown scheme "htps"
      2 | allow net htps://api.example.com
        |           ^~~~~~~~~~~~~~~~~~~~~~
        = https:// http:// tcp://, or host:port
  [121]

Twenty are shown, the others are counted:

  $ (echo version 1; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do echo word$i; done) | writ check - > out 2>&1
  [121]
  $ grep -c error: out
  20
  $ tail -1 out
  writ: 3 more not shown

For machines:

  $ printf 'version 1\nalow read /usr\n' | writ check --json - 2>/dev/null
  {"ok":false,"diagnostics":[{"level":"error","file":"-","line":2,"column":1,"text":"unknown word \"alow\"","hint":"did you mean \"allow\"?"}],"tests":0}
  [121]

The runner of these transcripts, tested through itself: it must be able to fail.

  $ run=$SRC/tests/golden/run.py
  $ printf 'One line.\n  $ echo hello\n  hello\n' > good.t
  $ $run good.t
  ok 1 - good.t
  1..1

A transcript that expects something else fails and shows what came instead:

  $ sed 's/^  hello/  goodbye/' good.t > bad.t
  $ $run good.t bad.t
  ok 1 - good.t
  not ok 2 - bad.t
  # --- bad.t expected
  # +++ actual
  # @@ -1,3 +1,3 @@
  #  One line.
  #    $ echo hello
  # -  goodbye
  # +  hello
  1..2
  [1]

An exit status that nobody wrote down is a failure too:

  $ printf '  $ (exit 121)\n' > status.t
  $ $run status.t | grep -v '^#'
  not ok 1 - status.t
  1..1

`--update` makes the file true, and keeps patterns that still match:

  $ printf '  $ echo pid 7; echo new\n  pid [0-9]+ (re)\n  old\n' > update.t
  $ $run --update update.t
  ok 1 - update.t
  1..1
  $ cat update.t
    $ echo pid 7; echo new
    pid [0-9]+ (re)
    new

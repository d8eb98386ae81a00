Mistakes with files.

  $ check() { { echo version 1; cat; } | writ check -; }
  $ mkdir dir

A file that is not there, a directory, and a name that is no profile:

  $ check <<'E'
  > use ./missing.writ
  > use ./dir/
  > use company
  > E
  -:2:5: error: ./missing.writ: No such file or directory
      2 | use ./missing.writ
        |     ^~~~~~~~~~~~~~
  -:3:5: error: read ./dir/: Is a directory
      3 | use ./dir/
        |     ^~~~~~
  -:4:5: error: no profile "company"
      4 | use company
        |     ^~~~~~~
        = writ profile list shows the names; a file is written ./FILE
  [121]

Two files that use each other:

  $ printf 'version 1\nuse ./b.writ\n' > a.writ
  $ printf 'version 1\nuse ./a.writ\n' > b.writ
  $ writ check ./a.writ
  ./././a.writ:2:5: error: "./b.writ" uses itself
      2 | use ./b.writ
        |     ^~~~~~~~
  [121]

An error in a used file is reported there:

  $ printf 'version 1\nalow read /usr\n' > lib.writ
  $ printf 'version 1\nuse ./lib.writ\nallow read /nowhere\n' > p.writ
  $ writ check p.writ
  p.writ:3:12: error: /nowhere does not exist
      3 | allow read /nowhere
        |            ^~~~~~~~
        = mkdir -p /nowhere   (or write ?/nowhere if it may be missing)
  ./lib.writ:2:1: error: unknown word "alow"
      2 | alow read /usr
        | ^~~~
        = did you mean "allow"?
  [121]

Only the policy itself can leave out base:

  $ printf 'version 1\nuse none\n' > bare.writ
  $ printf 'version 1\nuse ./bare.writ\n' > p.writ
  $ writ check p.writ
  ./bare.writ: error: only the policy itself can say use none, not a file it uses
  [121]

A file that cannot be read:

  $ writ check missing.writ
  writ: open missing.writ: No such file or directory
  [125]
  $ writ check dir
  writ: read dir: Is a directory
  [125]

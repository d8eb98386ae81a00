Every file begins with its version.

  $ check() { { echo version 1; cat; } | writ check -; }

Nothing at all:

  $ printf '' | writ check - 2>&1 | sed 's/ *$//'
  -:1:1: error: a policy begins with its version
      1 |
        | ^
        = put "version 1" on the first line

No version:

  $ printf 'allow read /usr\n' | writ check -
  -:1:1: error: a policy begins with its version
      1 | allow read /usr
        | ^
        = put "version 1" on the first line
  [121]

A version from the future:

  $ printf 'version 2\nallow read /usr\n' | writ check -
  -:1:9: error: unknown policy version
      1 | version 2
        |         ^
        = this writ reads version 1
  [121]

Not at the beginning:

  $ printf '# a comment is fine\nallow read /usr\nversion 1\n' | writ check -
  -:2:1: error: a policy begins with its version
      2 | allow read /usr
        | ^
        = put "version 1" on the first line
  [121]

Twice:

  $ check <<'E'
  > version 1
  > E
  -:2:1: error: version is said twice
      2 | version 1
        | ^~~~~~~~~
  [121]

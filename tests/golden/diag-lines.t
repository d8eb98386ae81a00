Mistakes in how a line is written.

  $ check() { { echo version 1; cat; } | writ check -; }

A quote that is never closed:

  $ check <<'E'
  > allow read "/usr/share
  > allow read /usr
  > E
  -:2:12: error: this quote is never closed
      2 | allow read "/usr/share
        |            ^~~~~~~~~~~
  [121]

A backslash outside quotes, and an escape that does not exist:

  $ check <<'E'
  > allow read /usr/a\ b
  > allow read "/usr/\q"
  > allow read "/usr/\x0"
  > E
  -:2:18: error: backslash outside quotes
      2 | allow read /usr/a\ b
        |                  ^
        = inside double quotes: \" \\ \* \n \t \xHH
  -:3:18: error: unknown escape
      3 | allow read "/usr/\q"
        |                  ^
        = inside double quotes: \" \\ \* \n \t \xHH
  -:4:18: error: unknown escape
      4 | allow read "/usr/\x0"
        |                  ^
        = inside double quotes: \" \\ \* \n \t \xHH
  [121]

Control characters are shown, never obeyed:

  $ printf 'version 1\n# \033[2Jnothing to see\n' | writ check -
  -:2:3: error: control character 0x1b
      2 | # \x1b[2Jnothing to see
        |   ^~~~
  [121]

So are characters that change the writing direction:

  $ printf 'version 1\nallow read /usr # \342\200\256nothing\n' | writ check -
  -:2:19: error: invisible or direction-changing character
      2 | allow read /usr # \xe2\x80\xaenothing
        |                   ^~~~~~~~~~~~
  [121]

Bytes that are not UTF-8:

  $ printf 'version 1\nallow read /usr/\344\n' | writ check -
  -:2:1: error: this line is not valid UTF-8
      2 | allow read /usr/\xe4
        | ^
        = inside double quotes, write other bytes as \xHH
  [121]

A word that is missing, and one too many:

  $ check <<'E'
  > allow
  > allow read
  > limit memory
  > limit memory 2 G
  > use python node
  > E
  -:2:1: error: more is needed for "allow"
      2 | allow
        | ^~~~~
        = allow VERB OBJECT [key=value ...]
  -:3:7: error: "read" needs a path
      3 | allow read
        |       ^~~~
  -:4:7: error: more is needed for "limit"
      4 | limit memory
        |       ^~~~~~
        = limit KEY VALUE, as in limit memory 2G
  -:5:16: error: too many words for "limit"
      5 | limit memory 2 G
        |                ^
        = limit KEY VALUE, as in limit memory 2G
  -:6:12: error: too many words for "use"
      6 | use python node
        |            ^~~~
        = use NAME, use FILE or use none
  [121]

Two objects in one rule:

  $ check <<'E'
  > allow read /usr /opt
  > E
  -:2:17: error: "read" does not take "/opt"
      2 | allow read /usr /opt
        |                 ^~~~
        = one object per rule
  [121]

A tab and a wide character keep the caret in place:

  $ printf 'version 1\nallow\tnet\tm\303\274sli.example.com\n' | writ check -
  -:2:11: error: write host names in their ASCII form
      2 | allow net müsli.example.com
        |           ^~~~~~~~~~~~~~~~~
        = its name on the wire is xn--msli-0ra.example.com
  [121]

A long line is cut around the place:

  $ printf 'version 1\nallow net https://api.example.com/%0200d methods=get\n' 1 | writ check -
  -:2:236: error: "get" is not a value for methods
      2 | ...00000000000000000000000000000000000000000000000000000000001 methods=get
        |                                                                ^~~~~~~~~~~
        = methods are written in capitals: methods=GET,POST
  [121]

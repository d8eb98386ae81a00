Mistakes with the other verbs.

  $ check() { { echo version 1; cat; } | writ check -; }

A program that is not here:

  $ check <<'E'
  > allow exec no-such-program
  > E
  -:2:12: error: no program "no-such-program" in PATH
      2 | allow exec no-such-program
        |            ^~~~~~~~~~~~~~~
        = give its path, or ?NAME if it may be missing
  [121]

A pattern of programs:

  $ check <<'E'
  > allow exec *
  > E
  -:2:12: error: exec names one program, or a directory with a slash
      2 | allow exec *
        |            ^
        = without any exec line, everything readable may run
  [121]

A socket that hands out authority:

  $ check <<'E'
  > allow unix /run/docker.sock
  > allow unix /run/user/1000/bus
  > E
  -:2:12: error: a container engine is root on this machine
      2 | allow unix /run/docker.sock
        |            ^~~~~~~~~~~~~~~~
        = if you mean it: danger unix /run/docker.sock
  -:3:12: error: systemd on the bus starts programs as you
      3 | allow unix /run/user/1000/bus
        |            ^~~~~~~~~~~~~~~~~~
        = if you mean it: danger unix /run/user/1000/bus
  [121]

A repository without an operation, and things that are none:

  $ check <<'E'
  > allow git https://git.example.com/acme/app.git
  > allow git acme/app fetch
  > allow git https://git.example.com fetch
  > E
  -:2:11: error: what may it do there?
      2 | allow git https://git.example.com/acme/app.git
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = add fetch, push=BRANCH or both
  -:3:11: error: "acme/app" is not a repository
      3 | allow git acme/app fetch
        |           ^~~~~~~~
        = https://host/owner/repo.git or git@host:owner/repo.git
  -:4:11: error: "https://git.example.com" is not a repository
      4 | allow git https://git.example.com fetch
        |           ^~~~~~~~~~~~~~~~~~~~~~~
        = https://host/owner/repo.git or git@host:owner/repo.git
  [121]

A flag with a value, and a key without one:

  $ check <<'E'
  > allow git https://git.example.com/acme/app.git fetch=yes
  > allow git https://git.example.com/acme/app.git push
  > E
  -:2:48: error: "fetch" takes no value
      2 | allow git https://git.example.com/acme/app.git fetch=yes
        |                                                ^~~~~~~~~
  -:3:48: error: "push" needs a value: key=value
      3 | allow git https://git.example.com/acme/app.git push
        |                                                ^~~~
  [121]

A device that is none, and a mode that is none:

  $ check <<'E'
  > allow device /etc/passwd
  > allow device /dev/null mode=w
  > E
  -:2:14: error: devices live below /dev
      2 | allow device /etc/passwd
        |              ^~~~~~~~~~~
        = as in /dev/dri/card0
  -:3:24: error: unknown mode
      3 | allow device /dev/null mode=w
        |                        ^~~~~~
        = mode=r or mode=rw
  [121]

A tool without its server:

  $ check <<'E'
  > allow tool create_issue
  > E
  -:2:12: error: a tool is named server/tool
      2 | allow tool create_issue
        |            ^~~~~~~~~~~~
        = as in github/create_issue, or github/* for all its tools
  [121]

An agent's name:

  $ check <<'E'
  > allow agent team/coder
  > E
  -:2:13: error: an agent's name has no slash
      2 | allow agent team/coder
        |             ^~~~~~~~~~
  [121]

A bundle cannot be denied, and deny takes no qualifiers:

  $ check <<'E'
  > deny shell full
  > deny net api.example.com methods=DELETE
  > E
  -:2:12: error: a bundle can only be allowed
      2 | deny shell full
        |            ^~~~
        = say it for its parts: exec, write, net
  -:3:26: error: deny takes no qualifiers
      3 | deny net api.example.com methods=DELETE
        |                          ^~~~~~~~~~~~~~
        = deny the whole object, or allow less
  [121]

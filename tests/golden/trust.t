A workspace's own policy may only narrow, until a person has read it.

  $ mkdir -p app/.git app/src app/logs && cd app
  $ facts="--facts $SRC/tests/fixtures/hosts/debian13-user-6.12.facts"
  $ mkdir -p $XDG_CONFIG_HOME/writ && printf 'version 1\nallow write .\nallow net https://a.example.com\n' > $XDG_CONFIG_HOME/writ/policy.writ
  $ writ explain $facts
  RULE                                       HERE    BY                            COST
  allow write .                              exact   bind + Landlock, create trap  creates ~2x
  allow net https://a.example.com            exact   per-name listener             none, not inspected
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  $ printf 'version 1\nallow write ./src\nallow net https://b.example.com\nsecret T from "cmd:touch pwned" to https://a.example.com as bearer\n' > agent.writ
  $ writ explain $facts
  $TMP/work/app/agent.writ:3:1: warning: this asks for more than your own policy allows, so it is cut down
      3 | allow net https://b.example.com
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
  $TMP/work/app/agent.writ:4:1: warning: this has no effect here
      4 | secret T from "cmd:touch pwned" to https://a.example.com as bearer
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = agent.writ may only narrow until you read it and type: writ trust
  RULE                                       HERE    BY                            COST
  allow write ./src                          exact   bind + Landlock, create trap  creates ~2x
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  $ writ check
  $TMP/work/app/agent.writ:3:1: warning: this asks for more than your own policy allows, so it is cut down
      3 | allow net https://b.example.com
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
  $TMP/work/app/agent.writ:4:1: warning: this has no effect here
      4 | secret T from "cmd:touch pwned" to https://a.example.com as bearer
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = agent.writ may only narrow until you read it and type: writ trust
  ok: 5 lines, 2 warnings

Trusting shows the text and needs a person.

  $ writ trust < /dev/null
  never trusted before; all of it:
  + version 1
  + allow write ./src
  + allow net https://b.example.com
  + secret T from "cmd:touch pwned" to https://a.example.com as bearer
  writ: trust needs a person at a terminal, or --yes
  [1]
  $ writ trust --yes
  never trusted before; all of it:
  + version 1
  + allow write ./src
  + allow net https://b.example.com
  + secret T from "cmd:touch pwned" to https://a.example.com as bearer
  writ: trusted; any change to it has to be trusted again
  $ writ explain $facts
  RULE                                                                HERE    BY                                             COST
  allow write .                                                       exact   bind + Landlock, create trap                   creates ~2x
  allow net https://a.example.com                                     exact   per-name listener, inspected                   TLS intercepted
  allow write ./src                                                   exact   bind + Landlock, create trap                   creates ~2x
  allow net https://b.example.com                                     exact   per-name listener                              none, not inspected
  secret T from "cmd:touch pwned" to https://a.example.com as bearer  exact   set outside, on verified TLS to its host only  TLS intercepted
  and 57 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them

Any change takes the trust away, and the next time only the change is shown.

  $ printf 'version 1\nallow write ./src\nallow net https://c.example.com\n' > agent.writ
  $ writ explain $facts 2>&1 | head -3
  $TMP/work/app/agent.writ:3:1: warning: this asks for more than your own policy allows, so it is cut down
      3 | allow net https://c.example.com
        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
  $ writ trust --yes
  changes since you last trusted it:
    version 1
    allow write ./src
  - allow net https://b.example.com
  - secret T from "cmd:touch pwned" to https://a.example.com as bearer
  + allow net https://c.example.com
  writ: trusted; any change to it has to be trusted again

It cannot bring in other files: a hash would not cover them.

  $ printf 'version 1\nuse ./more.writ\n' > agent.writ && printf 'version 1\nallow net *\n' > more.writ
  $ writ trust --yes
  $TMP/work/app/agent.writ:2:5: error: a workspace's policy cannot use files: trusting it pins only its own text
      2 | use ./more.writ
        |     ^~~~~~~~~~~
        = copy its lines; profiles can be used
  [121]
  $ writ check
  $TMP/work/app/agent.writ:2:5: error: a workspace's policy cannot use files: trusting it pins only its own text
      2 | use ./more.writ
        |     ^~~~~~~~~~~
        = copy its lines; profiles can be used
  [121]
  $ printf 'version 1\nuse shell-read-only\n' > agent.writ && writ check
  ok: 2 lines

A policy with errors is never trusted.

  $ printf 'version 1\nallow wrte ./src\n' > agent.writ
  $ writ trust --yes
  $TMP/work/app/agent.writ:2:7: error: unknown verb "wrte"
      2 | allow wrte ./src
        |       ^~~~
        = did you mean "write"?
  [121]
  $ rm agent.writ && writ trust --yes
  writ: open $TMP/work/app/agent.writ: No such file or directory
  [125]
  $ cd / && writ trust --yes
  writ: nothing to trust: a system directory is never a workspace
  [125]

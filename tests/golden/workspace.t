What is a workspace, and what never is.

  $ facts="--facts $SRC/tests/fixtures/hosts/debian13-user-6.12.facts"
  $ ws() { (cd "$1" && writ caps | sed -n 's/^fs.write:[^:]*://p; /^fs.write/q'); }
  $ mkdir -p app/src/deep plain && git init -q app
  $ ws app; ws app/src/deep; ws plain
  $TMP/work/app/**
  $TMP/work/app/**
  $TMP/work/plain/**

A repository above is one only if it is ours and real.

  $ mkdir -p fake/.git fake/me && ws fake/me
  $TMP/work/fake/me/**
  $ mkdir -p linked && printf 'gitdir: ../app/.git\n' > linked/.git && mkdir linked/sub && ws linked/sub
  $TMP/work/linked/**

The home directory, what holds it, and the system are not.

  $ for d in "$HOME" "$HOME/.." / /usr/share /usr/local /var/lib /var/lib/dpkg /var/log /tmp; do (cd $d && writ explain $facts 2>&1 | head -1 | cut -c1-60); done
  writ: no workspace: your home directory is never a workspace
  writ: no workspace: your home directory is never a workspace
  writ: no workspace: a system directory is never a workspace
  writ: no workspace: a system directory is never a workspace
  writ: no workspace: a system directory is never a workspace
  writ: no workspace: a system directory is never a workspace
  writ: no workspace: a system directory is never a workspace
  writ: no workspace: a system directory is never a workspace
  writ: no workspace: your home directory is never a workspace

Where HOME is missing, the account's own is still known.

  $ (cd app && env -u HOME -u XDG_CONFIG_HOME -u XDG_STATE_HOME writ explain $facts 2>&1 | sed -n 2p)
  allow write .                              exact   bind + Landlock, create trap  creates ~2x

A link inside the workspace that leads out of it is not followed.

  $ ln -s "$HOME" app/link && (cd app && writ check --allow write:./link)
  --allow:1:7: error: a link leads out of the workspace, to $TMP/home
      1 | write:./link
        |       ^~~~~~
        = if you mean it, name that path itself
  [121]

What a hint says can be pasted.

  $ cd app && writ check --allow 'read "./x; touch pwned"'
  --allow:1:6: error: $TMP/work/app/x; touch pwned does not exist
      1 | read "./x; touch pwned"
        |      ^~~~~~~~~~~~~~~~~~
        = mkdir -p '$TMP/work/app/x; touch pwned'   (or write ?"./x; touch pwned" if it may be missing)
  [121]
  $ writ explain $facts --workspace 'direct
  > allow write /var'
  writ: --workspace is direct or cow
  [125]
  $ writ check --var 'X=/a/../b' --allow 'read:$X'
  writ: --var wants NAME=/absolute/path
  [125]

Where writ keeps its own files stays closed, also over links and with only one of them known.

  $ mkdir -p $HOME/elsewhere && rm -rf $HOME/.config && ln -s $HOME/elsewhere $HOME/.config
  $ writ why $facts --allow write:~ write $HOME/elsewhere/writ/policy.writ | head -2
  denied: write $TMP/home/elsewhere/writ/policy.writ
  rule      default: writ's own files stay out of reach
  $ XDG_CONFIG_HOME=$HOME/elsewhere/ XDG_STATE_HOME=relative writ why $facts --allow write:~ write $HOME/elsewhere/writ/x | head -2
  denied: write $TMP/home/elsewhere/writ/x
  rule      default: writ's own files stay out of reach

A state directory that cannot be made is named, with the way out.

  $ XDG_STATE_HOME=/dev/null/x writ run -- true
  writ: mkdir /dev/null/x: Not a directory
  writ: writ keeps records and private homes there; set XDG_STATE_HOME to a directory that you can write
  [125]

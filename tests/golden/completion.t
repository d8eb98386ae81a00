Completion and manual pages come from the same table as --help.

  $ for s in bash zsh fish; do writ completion $s > c.$s; done; bash -n c.bash && echo right
  right
  $ comp() { bash -c '. ./c.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _writ; printf "%s\n" "${COMPREPLY[@]}" | sort' _ "$@"; }
  $ comp writ ex
  explain
  $ comp writ explain --t
  --tier
  $ comp writ explain --tier ''
  A
  B
  $ comp writ check --profile c
  c
  ci
  claude
  codex
  $ comp writ profile sh
  shell-read-only
  show
  $ comp writ session s
  start
  stop
  $ comp writ session --d
  --deny
  --detach
  $ comp writ run --e
  --env
  --explain-denials
  $ comp writ why w
  write
  $ writ completion tcsh
  writ: bash, zsh or fish, not "tcsh"
  [125]

Every verb and option of --help has a place in each of them.

  $ for v in run session ps stop allow check caps explain why lint doctor init trust profile; do for o in $(writ $v --help | grep -o '  --[a-z-]*\|, --[a-z-]*' | grep -o '[a-z-]*$' | sed 's/^--//'); do for f in c.bash c.zsh; do grep -q -e "--$o" $f || echo missing $v $o in $f; done; grep -q -e "from $v' -l $o" c.fish || echo missing $v $o in c.fish; writ man $v | tr -d '\\' | grep -q -e "$o" || echo missing $v $o in man; done; done
  $ for p in writ run session check caps explain why lint doctor init trust profile completion; do writ man $p > $p.1 && mandoc -T lint -W warning $p.1; done
  $ writ man nope
  writ: no page "nope"
  [125]

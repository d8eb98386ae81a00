Completion and manual pages come from the same table as --help.

  $ for s in bash zsh fish; do writ completion $s > c.$s; done; bash -n c.bash && echo right
  right
  $ comp() { bash -c '. ./c.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _writ; printf "%s\n" "${COMPREPLY[@]}" | sort' _ "$@"; }
  $ comp writ ex
  explain
  $ comp writ explain --t
  --tier
  --token
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
  $ comp writ why w
  write
  $ writ completion tcsh
  writ: bash, zsh or fish, not "tcsh"
  [125]

Every verb and option of --help has a place in each of them.

  $ for v in check caps explain why lint doctor conform init trust profile; do for o in $(writ $v --help | grep -o '  --[a-z-]*\|, --[a-z-]*' | sed 's/.*--//'); do for f in c.bash c.zsh; do grep -q -e "--$o" $f || echo missing $v $o in $f; done; grep -q -e "from $v' -l $o" c.fish || echo missing $v $o in c.fish; writ man $v | tr -d '\\' | grep -q -e "--$o" || echo missing $v $o in man; done; done
  $ for p in writ check caps explain why lint doctor conform init trust profile completion; do writ man $p > $p.1 && mandoc -T lint -W warning $p.1; done

Verbs share options, and each says what it means by them.

  $ for v in caps stop; do writ $v --help | grep -e ', --all '; writ man $v | grep -A1 -e all.fR | tail -1; grep "from $v' -l all " c.fish; done
    -a, --all                  built-in rules too
  built\-in rules too
  complete -c writ -n '__fish_seen_subcommand_from caps' -l all -s a -d 'built-in rules too'
    -a, --all                  every session of this user
  every session of this user
  complete -c writ -n '__fish_seen_subcommand_from stop' -l all -s a -d 'every session of this user'
  $ sed -n '/^\tstop)/,/;;/p' c.zsh | grep -o -e '--all.*]'
  --all[every session of this user]
  $ for v in check init; do writ $v --help | grep -e '  --print '; done
        --print                write the policy back in canonical spacing
        --print                write to standard output instead of the policy's place

  $ writ man nope
  writ: no page "nope"
  [125]

A first policy, written where the operator's policies live.

  $ mkdir -p app/.git && cd app && echo '{}' > package.json
  $ facts="--facts $SRC/tests/fixtures/hosts/debian13-user-6.12.facts"
  $ writ init < /dev/null
  writ: say --threat prototype, developer, production or api-only
  [125]
  $ writ init --threat nonsense
  writ: say --threat prototype, developer, production or api-only
  [125]
  $ writ init --threat developer $facts 2>&1 | sed 's/app-[0-9a-f]*/app-ID/'
  writ: wrote $TMP/home/.config/writ/projects/app-ID.writ
  writ: next: writ explain
  $ writ init --threat developer $facts 2>&1 | sed 's/app-[0-9a-f]*/app-ID/'
  writ: $TMP/home/.config/writ/projects/app-ID.writ is already there; edit it, or replace it with --force
  $ cat $XDG_CONFIG_HOME/writ/projects/app-*.writ
  version 1
  # The policy of $TMP/work/app, made by writ init --threat developer. It is yours to edit.
  # writ explain shows what enforces each line here, writ check finds mistakes.
  use node        # because of package.json

  # You are not watching all the time: it may write the project and reach the hosts listed here, nothing else.
  net level hosts+dns
  isolation >= process
  workspace direct

  allow write .
  # allow net https://api.example.com          # the hosts it needs, one per line
  # secret API_KEY from env:API_KEY to https://api.example.com as bearer
  deny read **/.env

  limit pids 1024
  limit session 8h
  $ writ check
  ok: 7 lines
  $ writ explain $facts
  RULE                                       HERE    BY                                             COST
  net level hosts+dns                        exact   own network and DNS                            none
  isolation >= process                       exact   a process on this kernel                       none
  workspace direct                           exact   the real tree, narrowed                        none
  allow write .                              exact   bind + Landlock, create trap                   creates ~2x
  deny read **/.env                          exact   mask, opens mediated; not base's system trees  opens ~6x
  limit pids 1024                            exact   process limit of its own user namespace        none
  limit session 8h                           exact   clock of the supervisor                        none
  state node                                 exact   a directory outside the workspace              none
  and 65 built-in lines (--all shows them)

  tier A as uid 1000, kernel 6.12.57+deb13-amd64; 15 of 18 guarantees hold; nothing asked of res.memory, res.cpu, res.disk
  gap: groups: supplementary groups cannot be dropped without privilege: what is shown stays readable through them
  $ ls -l $XDG_CONFIG_HOME/writ/projects | cut -c1-10 | tail -1
  -rw-------

Each kind of threat gives a policy that is right, and says at once what it needs that is not here.

  $ for t in prototype developer production api-only; do writ init --threat $t --print $facts > /tmp/writ-init-$$.writ && writ check /tmp/writ-init-$$.writ; done; rm /tmp/writ-init-$$.writ
  ok: 6 lines
  ok: 7 lines
  writ: isolation >= gvisor: none here: not in this version: only the host adapter runs commands
  writ: workspace cow: none here: not in this version: no copy-on-write workspaces
  writ: limit disk 5G: none here: not in this version: no copy-on-write workspaces
  writ: a run with this policy ends with 122 here: change these lines, or run it where they hold
  ok: 12 lines
  ok: 6 lines
  $ writ init --threat prototype --print $facts | grep 'ask '
  ask net *
  $ writ init --threat production --print $facts
  writ: isolation >= gvisor: none here: not in this version: only the host adapter runs commands
  writ: workspace cow: none here: not in this version: no copy-on-write workspaces
  writ: limit disk 5G: none here: not in this version: no copy-on-write workspaces
  writ: a run with this policy ends with 122 here: change these lines, or run it where they hold
  version 1
  # The policy of $TMP/work/app, made by writ init --threat production. It is yours to edit.
  # writ explain shows what enforces each line here, writ check finds mistakes.
  use node        # because of package.json

  # Strangers decide what the agent sees: a second kernel, a copy of the project, every request on record.
  net level signed
  isolation >= gvisor
  workspace cow
  require fs.read=exact fs.write=exact net=exact audit=exact

  allow write .
  # allow net https://api.example.com/v1/** methods=GET,POST
  # secret API_KEY from env:API_KEY to https://api.example.com as bearer
  deny read **/.env
  deny read **/.git

  limit memory 2G
  limit pids 256
  limit disk 5G
  limit session 30m
  limit output 10M
  $ cd / && writ init --threat developer
  writ: no project here: a system directory is never a workspace
  [125]

What lint says about writ policies: each rule once wrong and once right.

  $ mkdir -p app/.git app/logs && cd app && mkdir -p $HOME/.ssh
  $ w() { printf "version 1\nlimit memory 1G\nlimit session 1h\n$1\n" > p.writ; writ lint p.writ | grep -o '\[W[0-9]* [a-z-]*\]' || echo none; }
  $ w 'allow net *'; w 'ask net *'; w 'allow net https://api.example.com'
  [W201 any-host]
  none
  none
  $ w 'allow net https://*'; w 'allow net https://*.example.com'
  [W201 any-host]
  none
  $ w 'allow net pastebin.com'; w 'allow net https://pastebin.com/raw/** methods=GET'
  [W202 publishing-host]
  none
  $ w 'allow read ~'; w 'allow read ~/.ssh'; w 'allow read /'; w 'allow read ./logs'
  [W203 home-readable]
  [W203 home-readable]
  [W203 home-readable]
  none
  $ w 'allow write /usr'; w 'allow write ./logs'
  [W204 system-writable]
  none
  $ w 'danger unix /run/docker.sock'; w 'allow unix /run/app.sock'
  [W205 dangerous-socket]
  none
  $ w 'allow net https://a.example.com\nsecret T from env:T to https://a.example.com as env'; w 'allow net https://a.example.com\nsecret T from env:T to https://a.example.com as bearer'
  [W206 secret-inside]
  none
  $ w 'secret T from env:T to https://a.example.com as bearer'
  [W207 secret-unused]
  $ w 'allow shell full'; w 'allow shell read-write'
  [W201 any-host]
  [W208 shell-full]
  none
  $ w 'open .git/config'; w 'accept exec=partial'
  [W210 protection-lifted]
  [W211 weaker-accepted]
  $ w 'allow kernel io_uring'; w 'allow kernel ptrace-own'
  [W212 kernel-switch]
  none
  $ w 'agent helper\n  allow read ./logs'; w 'allow read ./logs\nallow agent helper\nagent helper\n  allow read ./logs'
  [W213 agent-unused]
  none
  $ w 'allow net db.internal:5432'; w 'allow net db.internal:5432 private=10.0.0.0/8'
  [W214 internal-name]
  none
  $ w 'allow net http://example.com'; w 'allow net http://localhost:3000'
  [W215 plain-http]
  none
  $ printf 'version 1\nallow read ./logs\n' > p.writ; writ lint p.writ
  p.writ:1:1: info: No limit on memory or on time [W209 no-limits]
      1 | version 1
        | ^~~~~~~~~
    why: A runaway build or a loop takes the machine with it; the built-in limits only stop the worst.
    fix: Add `limit memory 4G` and `limit session 2h`, or what fits.
  1 file, 1 finding
  $ printf 'version 1\nalow read ./logs\n' > p.writ; writ lint p.writ
  p.writ:2:1: error: unknown word "alow"
      2 | alow read ./logs
        | ^~~~
        = did you mean "allow"?
  p.writ: error: not a right policy, see above
  1 file, 0 findings
  [121]
  $ printf 'version 1\nlimit memory 1G\nlimit session 1h\nallow net *\n' > p.writ; writ lint p.writ
  p.writ:4:1: warning: Any public host can be reached [W201 any-host]
      4 | allow net *
        | ^~~~~~~~~~~
    why: Whatever the agent can read it can send anywhere, and what it fetches may carry instructions.
    fix: Name the hosts it needs, one net line each; `ask net *` decides case by case.
  1 file, 1 finding
  [1]
  $ writ lint --json p.writ | python3 -m json.tool > /dev/null && writ lint --sarif p.writ | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["version"], d["runs"][0]["results"][0]["ruleId"])'
  2.1.0 W201
  $ writ lint; writ lint nowhere; writ lint --format nope p.writ
  writ: lint needs files, as in: writ lint docker-compose.yml .mcp.json
  nowhere: error: open nowhere: No such file or directory
  1 file, 0 findings
  writ: no format "nope"; writ docker compose devcontainer dockerfile kube claude srt mcp
  [125]

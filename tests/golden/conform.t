What `writ conform` says about itself and about mistakes. What it finds is in tests/escape/conform_test.py.

  $ writ help conform
  writ conform: try every known way out of a sandbox, and say which ones work

  usage: writ conform [OPTIONS] [--under COMMAND [-- WORD...]]

  Makes each attempt first without a sandbox, then inside `writ run`, and judges
  both from outside. What does not work even without a sandbox is n.a. here;
  what the plan declared beforehand is a gap. --under tests another sandbox: a
  command that runs the one behind it, in which {work}, {out} and {dir} are
  replaced. Ends with 1 if anything escaped, did not run or is broken. A full
  run takes minutes; nothing is left behind.

    -h, --help                 show this help
        --tier A|B             use this tier instead of the best one
        --json                 output for machines
    -v, --verbose              every row
        --bound NAME           only attempts on this bound, as in net; may be repeated
        --id ID                only this attempt; may be repeated
        --user NAME            run everything as this user; needs root
        --under COMMAND        test this sandbox instead of writ; '' for none at all
        --declare G=LEVEL,...  what that sandbox does not claim, as in fs.read=none
        --bare FILE            keep there what works without a sandbox, for further runs
        --no-controls          do not ask what else the sandbox refuses
        --jobs N               sandboxes side by side (2)
        --dir DIR              where scenes are made ($TMPDIR, or /var/tmp)
        --list                 list the attempts and run none

  example: writ conform --bound net --bound unix
  $ writ conform --list --id FS-001
  FS-001    fs        fs.write     open for writing with truncation
  $ writ conform --list --id FS-001 --json
  [
  {"id":"FS-001","bound":"fs","guarantee":"fs.write","what":"open for writing with truncation","judged":"outside","control":true,"policy":"","gap":"","flags":[]}
  ]
  $ writ conform --id FS-999
  writ: no row "FS-999"; writ conform --list shows them
  [125]
  $ writ conform --bound files
  writ: no bound "files"; writ conform --list shows them
  [125]
  $ writ conform --id FS-001 --bound net
  writ: no row is of that bound and has that id
  [125]
  $ writ conform --under env --declare fs.reed=none
  writ: --declare: no guarantee "fs.reed"; writ explain -v lists them
  [125]
  $ writ conform --under env --declare fs.read=weak
  writ: --declare fs.read=LEVEL: exact, stricter, partial or none
  [125]
  $ writ conform --declare fs.read=none
  writ: --declare needs --under
  [125]
  $ writ conform --under "sh -c 'x"
  writ: --under: a quote ' is not closed
  [125]
  $ writ conform env
  writ: a command needs --under
  [125]
  $ writ conform --tier C
  writ: --tier wants A or B
  [125]
  $ writ conform --under env --tier A
  writ: --tier is of writ, not of what --under names
  [125]
  $ writ conform --jobs none
  writ: --jobs wants a number from 1 to 16
  [125]
  $ writ conform --dir /nowhere/at/all --id FS-001
  writ: --dir /nowhere/at/all: No such file or directory
  [125]

The matrix: nothing is no sandbox, and says so.

  $ writ conform --dir /tmp --under '' --id FS-001 --id RD-001
  bound        rows  ESCAPED
  fs              1        1
  read            1        1
  total           2        2

  ESCAPED: got out
    FS-001  fs.write    open for writing with truncation  [changed: out/FS-001/f]
    RD-001  fs.read     read()  [the secret is in the output]

  tested: nothing, as * (glob)
  2 of 2 attempts mean something here; 2 of them are judged from outside; 2 of 2 controls work inside
  [1]
  $ writ conform --dir /tmp --under '' --id FS-001 --id RD-001 --declare fs.write=none,fs.read=partial
  bound        rows      gap
  fs              1        1
  read            1        1
  total           2        2

  gap: got out, or was not started, as declared beforehand
    FS-001  fs.write    open for writing with truncation  [changed: out/FS-001/f]
    RD-001  fs.read     read()  [the secret is in the output]

  tested: nothing, as * (glob)
  2 of 2 attempts mean something here; 2 of them are judged from outside; 2 of 2 controls work inside

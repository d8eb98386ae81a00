"""Hand-written cases for meet (section 5) and for the text of physical paths.

A meet line is "ANSWER A | B", answer the text of the meet, "-" for none, or E. A path line is
"ANSWER HEX". The answers were written from docs/capabilities.md, not computed. "{N*x}" stands for
N times x.
"""

MEET = """
# 5 E: one of the two does not parse
E fs.read:h:/a/ | fs.read:h:/**
E fs.read:h:/** | fs.read:h:/a;n=0
# 5 if one is within the other, it is the answer
fs.read:h:/a fs.read:h:/a | fs.read:h:/a
fs.read:h:/a fs.read:h:/a | fs.read:h:/**
fs.read:h:/a fs.read:h:/** | fs.read:h:/a
fs.read:h:/a;n=5 fs.read:h:/a;n=5 | fs.read:h:/**
fs.put:h:/a fs.put:h:/a | fs.write:h:/a/**
http.request:h:https://a.b:1/**;m=*;q=any;tls=pass http.request:h:https://a.b:1/**;m=*;q=any;tls=pass | net.connect:h:tcp/a.b:1
net.connect:h:tcp/a.b:1 net.connect:h:tcp/a.b:1 | net.connect:h:tcp/a.b:1;priv=10.0.0.1
fs.read:h:/a;rate=1/60 fs.read:h:/a;rate=1/60 | fs.read:h:/a;rate=60/3600
# 5 realm and action
- fs.read:h:/a | fs.read:g:/a
- fs.read:h:/a | fs.write:h:/a
- fs.read:h:/a | fs.put:h:/a
- env.pass:h:/a | state.use:h:/a
fs.put:h:/a/b fs.put:h:/a/* | fs.write:h:/*/b
fs.put:h:/a/b fs.write:h:/a/* | fs.put:h:/*/b
fs.put:h:/a;n=1 fs.put:h:/** | fs.write:h:/a;n=1
# 5 paths, segment by segment
fs.read:h:/a/b fs.read:h:/a/* | fs.read:h:/*/b
- fs.read:h:/a/* | fs.read:h:/b/*
- fs.read:h:/a/* | fs.read:h:/a
- fs.read:h:/a | fs.read:h:/b
- fs.read:h:/ | fs.read:h:/*
fs.read:h:/a*b fs.read:h:/a* | fs.read:h:/*b
fs.read:h:/ab*bc fs.read:h:/a*bc | fs.read:h:/ab*c
fs.read:h:/ab*b fs.read:h:/ab* | fs.read:h:/*b
- fs.read:h:/a*c | fs.read:h:/b*c
- fs.read:h:/a*c | fs.read:h:/a*d
- fs.read:h:/a*c | fs.read:h:/ab
- fs.read:h:/a*c | fs.read:h:/bb*c
- fs.read:h:/bb*c | fs.read:h:/a*c
- fs.read:h:/a*c | fs.read:h:/a*dd
- fs.read:h:/a*dd | fs.read:h:/a*c
fs.read:h:/abc*xyz fs.read:h:/a*xyz | fs.read:h:/abc*z
fs.read:h:/a/b/** fs.read:h:/a/** | fs.read:h:/*/b/**
fs.read:h:/a/b fs.read:h:/a/** | fs.read:h:/*/b
fs.read:h:/a fs.read:h:/a/** | fs.read:h:/*
fs.read:h:/a/x*/c/** fs.read:h:/a/*/c/** | fs.read:h:/*/x*/**
- fs.read:h:/a/b/c/** | fs.read:h:/*/b
fs.read:h:/%20*0 fs.read:h:/%20* | fs.read:h:/*0
- fs.read:h:/*%20 | fs.read:h:/*0
- fs.read:h:/%2A* | fs.read:h:/%20*
# 5 urlpath: the empty segment
http.request:h:https://a.b:1/x/;m=GET;q=none http.request:h:https://a.b:1/x/**;m=GET;q=any | http.request:h:https://a.b:1/*/;m=*;q=none
- http.request:h:https://a.b:1/x/;m=GET;q=any | http.request:h:https://a.b:1/x/*;m=*;q=none
- http.request:h:https://a.b:1/;m=GET;q=any | http.request:h:https://a.b:1/*;m=*;q=none
http.request:h:https://a.b:1/;m=GET;q=none http.request:h:https://a.b:1/;m=GET;q=any | http.request:h:https://a.b:1/**;m=*;q=none
- http.request:h:https://a.b:1/x;m=GET;q=any | http.request:h:https://a.b:1/x/;m=*;q=none
# 5 hosts only if one is within the other
net.connect:h:tcp/x.a.b:1;n=1 net.connect:h:tcp/x.a.b:1 | net.connect:h:tcp/*.a.b:1;n=1
net.connect:h:tcp/*.a.b:1;n=1 net.connect:h:tcp/*.a.b:1 | net.connect:h:tcp/**:1;n=1
net.connect:h:tcp/**.x.a.b:1;n=1 net.connect:h:tcp/**.a.b:1;n=1 | net.connect:h:tcp/**.x.a.b:1
- net.connect:h:tcp/*.a.b:1 | net.connect:h:tcp/**.x.a.b:1
- net.connect:h:tcp/a.b:1 | net.connect:h:tcp/*.a.b:1
- net.connect:h:tcp/localhost:1 | net.connect:h:tcp/**:1
- net.connect:h:tcp/10.0.0.1:1 | net.connect:h:tcp/**:1
net.connect:h:tcp/10.0.0.0/9:1;n=1 net.connect:h:tcp/10.0.0.0/8:1;n=1 | net.connect:h:tcp/10.0.0.0/9:1
- net.connect:h:tcp/10.0.0.0/9:1 | net.connect:h:tcp/10.128.0.0/9:1
# 5 ports by intersection
net.connect:h:tcp/a.b:80-90 net.connect:h:tcp/a.b:1-90 | net.connect:h:tcp/a.b:80-100
net.connect:h:tcp/a.b:90 net.connect:h:tcp/a.b:1-90 | net.connect:h:tcp/a.b:90-100
- net.connect:h:tcp/a.b:1-89 | net.connect:h:tcp/a.b:90-100
net.bind:h:tcp/localhost:80-90 net.bind:h:tcp/localhost:1-90 | net.bind:h:tcp/localhost:80-100
- http.request:h:https://a.b:1/a;m=*;q=any | http.request:h:https://a.b:2/a;m=*;q=any
- http.request:h:https://a.b:1/a;m=*;q=any | http.request:h:http://a.b:1/a;m=*;q=any
# 5 priv by intersection; no common priv drops the param
net.connect:h:tcp/a.b:1;n=1;priv=10.0.0.1 net.connect:h:tcp/a.b:1;priv=10.0.0.1 | net.connect:h:tcp/a.b:1;n=1;priv=10.0.0.0/8
net.connect:h:tcp/a.b:1 net.connect:h:tcp/a.b:1;priv=10.0.0.1 | net.connect:h:tcp/a.b:1;priv=11.0.0.1
net.connect:h:tcp/a.b:1;n=1 net.connect:h:tcp/a.b:1;n=1;priv=10.0.0.1 | net.connect:h:tcp/a.b:1;n=2
net.connect:h:tcp/a.b:1;n=1 net.connect:h:tcp/a.b:1;priv=10.0.0.1 | net.connect:h:tcp/a.b:1;n=1
net.connect:h:tcp/a.b:1;priv=10.0.0.1,11.0.0.0/9 net.connect:h:tcp/a.b:1;priv=10.0.0.0/8,11.0.0.0/9 | net.connect:h:tcp/a.b:1;priv=10.0.0.1,11.0.0.0/8
net.connect:h:tcp/a.b:1;priv=10.0.0.0/16,[fd00::]/8 net.connect:h:tcp/a.b:1;priv=10.0.0.0/16,[fc00::]/7 | net.connect:h:tcp/a.b:1;priv=10.0.0.0/8,[fd00::]/8
# 5 m, sha256, op by intersection
http.request:h:https://a.b:1/a;m=GET;q=any http.request:h:https://a.b:1/a;m=GET,POST;q=any | http.request:h:https://a.b:1/a;m=GET,PUT;q=any
- http.request:h:https://a.b:1/a;m=GET;q=any | http.request:h:https://a.b:1/a;m=PUT;q=any
http.request:h:https://a.b:1/a;m=GET,PUT;q=none http.request:h:https://a.b:1/a;m=*;q=none | http.request:h:https://a.b:1/a;m=GET,PUT;q=any
http.request:h:https://a.b:1/a;m=*;q=none http.request:h:https://a.b:1/*;m=*;q=none | http.request:h:https://a.b:1/a;m=*;q=any
proc.exec:h:/a;sha256={64*1} proc.exec:h:/a;sha256={64*0},{64*1} | proc.exec:h:/a;sha256={64*1},{64*2}
- proc.exec:h:/a;sha256={64*0} | proc.exec:h:/a;sha256={64*1}
proc.exec:h:/a;n=1;sha256={64*0} proc.exec:h:/a;sha256={64*0} | proc.exec:h:/a;n=1
git.use:h:https://a.b:1/r;n=1;op=fetch git.use:h:https://a.b:1/r;op=fetch | git.use:h:https://a.b:1/r;n=1;op=fetch,push;ref=x
- git.use:h:https://a.b:1/r;op=fetch | git.use:h:https://a.b:1/r;op=push;ref=x
# 5 if op loses push, ref goes; a part that has none makes the whole none
git.use:h:https://a.b:1/r;op=push;ref=refs/heads/x git.use:h:https://a.b:1/r;op=push;ref=refs/*/x | git.use:h:https://a.b:1/r;op=fetch,push;ref=refs/heads/*
- git.use:h:https://a.b:1/r;op=fetch,push;ref=x | git.use:h:https://a.b:1/r;op=fetch,push;ref=y
git.use:h:https://a.b:1/r;op=fetch,push;ref=refs/a*z/** git.use:h:https://a.b:1/r;op=fetch,push;ref=refs/a*/** | git.use:h:https://a.b:1/r;op=fetch,push;ref=refs/*z/**
- git.use:h:https://a.b:1/r;op=fetch | git.use:h:https://a.b:1/s;op=fetch
# 5 q, o, n, max-*: the smaller
http.request:h:https://a.b:1/a;m=GET;q=none http.request:h:https://a.b:1/a;m=*;q=none | http.request:h:https://a.b:1/a;m=GET;q=any
dev.use:h:/dev/a;o=r dev.use:h:/dev/a;o=rw | dev.use:h:/dev/*;o=r
dev.use:h:/dev/a/b;o=rw dev.use:h:/dev/a/*;o=rw | dev.use:h:/dev/*/b;o=rw
fs.read:h:/a;n=3 fs.read:h:/a;n=5 | fs.read:h:/*;n=3
net.connect:h:tcp/a.b:1;max-in=3;max-out=4 net.connect:h:tcp/a.b:1;max-in=5;max-out=4 | net.connect:h:tcp/a.b:1;max-in=3;max-out=6
# 5 one-sided params are kept
fs.read:h:/a;n=3;rate=1/1 fs.read:h:/a;n=3 | fs.read:h:/a;rate=1/1
net.connect:h:tcp/a.b:1;max-in=3;max-out=4 net.connect:h:tcp/a.b:1;max-in=3 | net.connect:h:tcp/a.b:1;max-out=4
proc.exec:h:/a;args=/x/**;n=1 proc.exec:h:/a;args=/x/** | proc.exec:h:/a;n=1
proc.exec:h:/a;args=/x/a*b proc.exec:h:/a;args=/x/a* | proc.exec:h:/a;args=/*/*b
- proc.exec:h:/a;args=/x | proc.exec:h:/a;args=/y
# 5 rate: the smaller count and the longer window
fs.read:h:/a;rate=6/60 fs.read:h:/a;rate=10/60 | fs.read:h:/a;rate=6/30
fs.read:h:/a;rate=5/30 fs.read:h:/a;rate=10/60 | fs.read:h:/a;rate=5/30
fs.read:h:/a;rate=1/3600 fs.read:h:/a;rate=1/1 | fs.read:h:/a;rate=59/3600
fs.read:h:/a;rate=2/3 fs.read:h:/a;rate=2/2 | fs.read:h:/a;rate=3/3
# 5 approve: the union
fs.read:h:/a;approve=x,y fs.read:h:/a;approve=x | fs.read:h:/a;approve=y
fs.read:h:/a;approve=x,y,z fs.read:h:/a;approve=x,z | fs.read:h:/a;approve=y,z
fs.read:h:/a;approve=x fs.read:h:/** | fs.read:h:/a;approve=x
# 5 danger, tls kept only if both have it
unix.connect:h:/a;n=1 unix.connect:h:/a;danger=1;n=1 | unix.connect:h:/a;n=2
unix.connect:h:/a;n=1 unix.connect:h:/a;danger=1 | unix.connect:h:/a;n=1
unix.connect:h:/a;danger=1;n=1;rate=1/1 unix.connect:h:/a;danger=1;n=1 | unix.connect:h:/a;danger=1;rate=1/1
- unix.connect:h:/a | unix.connect:h:/b
http.request:h:https://a.b:1/**;m=*;max-in=1;max-out=1;q=any;tls=pass http.request:h:https://a.b:1/**;m=*;max-in=1;q=any;tls=pass | http.request:h:https://a.b:1/**;m=*;max-out=1;q=any;tls=pass
http.request:h:https://a.b:1/**;m=*;max-in=1;max-out=1;q=any http.request:h:https://a.b:1/**;m=*;max-in=1;q=any;tls=pass | http.request:h:https://a.b:1/**;m=*;max-out=1;q=any
http.request:h:https://a.b:1/x;m=GET;max-in=1;q=any http.request:h:https://a.b:1/**;m=*;max-in=1;q=any;tls=pass | http.request:h:https://a.b:1/x;m=GET;q=any
# 5 as equal, to part by part
secret.use:h:/k;as=env;to=https://a.b:1/x/y secret.use:h:/k;as=env;to=https://a.b:1/x/* | secret.use:h:/k;as=env;to=https://a.b:1/*/y
secret.use:h:/k;as=env;n=1;to=https://x.a.b:1/x secret.use:h:/k;as=env;n=1;to=https://*.a.b:1/x | secret.use:h:/k;as=env;to=https://x.a.b:1/**
- secret.use:h:/k;as=env;to=https://a.b:1/x | secret.use:h:/k;as=basic;to=https://a.b:1/x
- secret.use:h:/k;as=env;to=https://a.b:1/x | secret.use:h:/k;as=env;to=http://a.b:1/x
- secret.use:h:/k;as=env;to=https://a.b:1/x | secret.use:h:/k;as=env;to=https://a.b:2/x
- secret.use:h:/k;as=env;to=https://a.b:1/x | secret.use:h:/l;as=env;to=https://a.b:1/x
# 5 http.request with net.connect gives http.request
http.request:h:https://a.b:1/x;m=GET;n=5;q=any http.request:h:https://a.b:1/x;m=GET;q=any | net.connect:h:tcp/a.b:1-9;n=5
http.request:h:https://a.b:1/x;m=GET;n=5;q=any net.connect:h:tcp/a.b:1-9;n=5 | http.request:h:https://**:1/x;m=GET;q=any
http.request:h:https://*.a.b:1/**;m=*;max-in=7;q=any http.request:h:https://**:1/**;m=*;q=any;tls=pass | net.connect:h:tcp/*.a.b:1;max-in=7
http.request:h:https://10.0.0.1:1/x;m=GET;max-out=1;q=any http.request:h:https://10.0.0.1:1/x;m=GET;q=any | net.connect:h:tcp/10.0.0.0/8:1;max-out=1
- http.request:h:https://a.b:1/x;m=GET;q=any | net.connect:h:tcp/a.b:2-9
- http.request:h:https://a.b:1/x;m=GET;q=any | net.connect:h:tcp/c.b:1
# 5 a result over 4096 bytes is no capability
fs.read:h:/a{2041*x}*{2042*y} fs.read:h:/a{2041*x}* | fs.read:h:/*{2042*y}
- fs.read:h:/a{2041*x}* | fs.read:h:/*{2043*y}
# 5 the other actions
env.pass:h:/L*L env.pass:h:/L* | env.pass:h:/*L
tool.call:h:/s/t tool.call:h:/s/* | tool.call:h:/*/t
agent.spawn:h:/w*1 agent.spawn:h:/w* | agent.spawn:h:/*1
state.use:h:/a*b state.use:h:/a* | state.use:h:/*b
kernel.use:h:/io_uring;n=1;rate=1/1 kernel.use:h:/io_uring;n=1 | kernel.use:h:/io_uring;rate=1/1
- kernel.use:h:/io_uring | kernel.use:h:/ptrace-own
"""

# "/" is 2f, "a" 61, "." 2e, "*" 2a, "%" 25
PATH = """
# 1 Segments and paths: the canonical text of a physical path
/ 2f
/a 2f61
/a/b 2f612f62
/%2A 2f2a
/%25 2f25
/%20 2f20
/%C3%A9 2fc3a9
/%FF%80 2fff80
/%0A%01%7F 2f0a017f
/~+@=-_.0Zz 2f7e2b403d2d5f2e305a7a
/%3A%3B%2C%5C 2f3a3b2c5c
/... 2f2e2e2e
/.a 2f2e61
E 61
E 2f612f
E 2f2f61
E 2f2f
E 2f2e
E 2f2e2e
E 2f612f2e2e2f62
E 2f6100
E 2e2f61
{128*/a} {128*2f61}
E {129*2f61}
"""

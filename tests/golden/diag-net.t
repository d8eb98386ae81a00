Mistakes in network objects.

  $ check() { { echo version 1; cat; } | writ check -; }

Schemes:

  $ check <<'E'
  > allow net ftp://files.example.com
  > allow net htps://api.example.com
  > E
  -:2:11: error: unknown scheme "ftp"
      2 | allow net ftp://files.example.com
        |           ^~~~~~~~~~~~~~~~~~~~~~~
        = https:// http:// tcp://, or host:port
  -:3:11: error: unknown scheme "htps"
      3 | allow net htps://api.example.com
        |           ^~~~~~~~~~~~~~~~~~~~~~
        = https:// http:// tcp://, or host:port
  [121]

A path without a scheme:

  $ check <<'E'
  > allow net api.example.com/v1
  > E
  -:2:11: error: a path needs a URL with its scheme
      2 | allow net api.example.com/v1
        |           ^~~~~~~~~~~~~~~~~~
        = https://api.example.com/v1
  [121]

The loopback has one name:

  $ check <<'E'
  > allow net 127.0.0.1:3000
  > allow net [::1]:3000
  > allow net app.localhost:3000
  > allow net localhost
  > E
  -:2:11: error: "127.0.0.1" names the loopback
      2 | allow net 127.0.0.1:3000
        |           ^~~~~~~~~~~~~~
        = localhost:PORT is this machine's loopback
  -:3:11: error: "[::1]" names the loopback
      3 | allow net [::1]:3000
        |           ^~~~~~~~~~
        = localhost:PORT is this machine's loopback
  -:4:11: error: "app.localhost" names the loopback
      4 | allow net app.localhost:3000
        |           ^~~~~~~~~~~~~~~~~~
        = localhost:PORT is this machine's loopback
  -:5:11: error: a port is missing
      5 | allow net localhost
        |           ^~~~~~~~~
        = localhost:PORT
  [121]

Ports:

  $ check <<'E'
  > allow net db.example.com:postgres
  > allow net db.example.com:1-1000
  > allow net https://api.example.com:80-90
  > allow net tcp://db.example.com
  > E
  -:2:11: error: "postgres" is not a port
      2 | allow net db.example.com:postgres
        |           ^~~~~~~~~~~~~~~~~~~~~~~
        = 443, or 8000-8010
  -:3:11: error: a range has at most 64 ports
      3 | allow net db.example.com:1-1000
        |           ^~~~~~~~~~~~~~~~~~~~~
  -:4:11: error: a URL has one port
      4 | allow net https://api.example.com:80-90
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = use tcp://host:first-last
  -:5:11: error: a port is missing
      5 | allow net tcp://db.example.com
        |           ^~~~~~~~~~~~~~~~~~~~
        = tcp://db.example.com:PORT
  [121]

Addresses and networks:

  $ check <<'E'
  > allow net 10.0.0.0/8
  > allow net 10.0.0.1/8:80
  > allow net 2001:db8::1
  > allow net 0.0.0.0/0:80
  > allow net 0x7f.1:80
  > E
  -:2:11: error: a network needs a port
      2 | allow net 10.0.0.0/8
        |           ^~~~~~~~~~
        = tcp://10.0.0.0/8:PORT
  -:3:11: error: a path needs a URL with its scheme
      3 | allow net 10.0.0.1/8:80
        |           ^~~~~~~~~~~~~
        = https://10.0.0.1/8:80
  -:4:11: error: an IPv6 address stands in brackets
      4 | allow net 2001:db8::1
        |           ^~~~~~~~~~~
        = [ADDRESS]:PORT
  -:5:11: error: "0.0.0.0/0" cannot be allowed: it covers loopback or reserved addresses
      5 | allow net 0.0.0.0/0:80
        |           ^~~~~~~~~~~~
  -:6:11: error: "0x7f.1" is not a host name or address
      6 | allow net 0x7f.1:80
        |           ^~~~~~~~~
  [121]

Host patterns:

  $ check <<'E'
  > allow net *example.com
  > allow net *.com
  > allow net api.*.com
  > allow net api.example.com.
  > E
  -:2:11: error: "*example.com" is not a host pattern
      2 | allow net *example.com
        |           ^~~~~~~~~~~~
        = *.example.com is one label, **.example.com one or more
  -:3:11: error: "*.com" is not a host pattern
      3 | allow net *.com
        |           ^~~~~
        = *.example.com is one label, **.example.com one or more
  -:4:11: error: "api.*.com" is not a host name or address
      4 | allow net api.*.com
        |           ^~~~~~~~~
  -:5:11: error: leave out the dot at the end of a host name
      5 | allow net api.example.com.
        |           ^~~~~~~~~~~~~~~~
  [121]

A name that is not ASCII:

  $ check <<'E'
  > allow net https://bücher.example.com
  > E
  -:2:11: error: write host names in their ASCII form
      2 | allow net https://bücher.example.com
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~
        = its name on the wire is xn--bcher-kva.example.com
  [121]

Things that do not belong into a URL:

  $ check <<'E'
  > allow net https://me:pw@api.example.com
  > allow net https://api.example.com/v1?key=1
  > allow net https://api.example.com/a#b
  > E
  -:2:11: error: a user name in a URL
      2 | allow net https://me:pw@api.example.com
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = give credentials with a secret line
  -:3:11: error: a query or fragment in a URL
      3 | allow net https://api.example.com/v1?key=1
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = say query=none or query=any behind the URL
  -:4:11: error: a query or fragment in a URL
      4 | allow net https://api.example.com/a#b
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~
        = say query=none or query=any behind the URL
  [121]

Paths in a URL:

  $ check <<'E'
  > allow net https://api.example.com/**/admin
  > allow net https://api.example.com/a/../b
  > allow net https://api.example.com/%2e%2e/b
  > allow net https://api.example.com/a//b
  > E
  -:2:11: error: "/**/admin" is not a path pattern
      2 | allow net https://api.example.com/**/admin
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = plain segments, at most one * in each, ** only at the end
  -:3:11: error: "/a/../b" is not a path pattern
      3 | allow net https://api.example.com/a/../b
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = plain segments, at most one * in each, ** only at the end
  -:4:11: error: "/%2e%2e/b" is not a path pattern
      4 | allow net https://api.example.com/%2e%2e/b
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = plain segments, at most one * in each, ** only at the end
  -:5:11: error: "/a//b" is not a path pattern
      5 | allow net https://api.example.com/a//b
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~
        = plain segments, at most one * in each, ** only at the end
  [121]

Methods need HTTP:

  $ check <<'E'
  > allow net db.example.com:5432 methods=GET
  > allow net * methods=GET
  > E
  -:2:31: error: methods= needs HTTP, and this rule is for any TCP
      2 | allow net db.example.com:5432 methods=GET
        |                               ^~~~~~~~~~~
        = use an https:// URL
  -:3:13: error: methods= needs HTTP, and this rule is for any TCP
      3 | allow net * methods=GET
        |             ^~~~~~~~~~~
        = https://* is every public name over HTTPS
  [121]

What is passed through cannot be judged:

  $ check <<'E'
  > allow net https://api.example.com/v1 tls=passthrough
  > allow net https://api.example.com tls=passthrough count=3
  > E
  -:2:11: error: what is passed through cannot be looked into
      2 | allow net https://api.example.com/v1 tls=passthrough
        |           ^~~~~~~~~~~~~~~~~~~~~~~~~~
        = leave out the path and methods, query, count, rate
  -:3:11: error: what is passed through cannot be looked into
      3 | allow net https://api.example.com tls=passthrough count=3
        |           ^~~~~~~~~~~~~~~~~~~~~~~
        = leave out the path and methods, query, count, rate
  [121]

Values of qualifiers:

  $ check <<'E'
  > allow net api.example.com methods=get
  > allow net api.example.com methods=GET,GET
  > allow net api.example.com query=short
  > allow net api.example.com rate=10
  > allow net api.example.com count=many
  > allow net api.example.com up=1.5M down=0
  > E
  -:2:27: error: "get" is not a value for methods
      2 | allow net api.example.com methods=get
        |                           ^~~~~~~~~~~
        = methods are written in capitals: methods=GET,POST
  -:3:27: error: "GET,GET" is not a value for methods
      3 | allow net api.example.com methods=GET,GET
        |                           ^~~~~~~~~~~~~~~
        = methods=GET,POST, each once
  -:4:27: error: "short" is not a value for query
      4 | allow net api.example.com query=short
        |                           ^~~~~~~~~~~
        = query=none or query=any
  -:5:27: error: "10" is not a value for rate
      5 | allow net api.example.com rate=10
        |                           ^~~~~~~
        = rate=10/1h
  -:6:27: error: "many" is not a value for count
      6 | allow net api.example.com count=many
        |                           ^~~~~~~~~~
        = count=20
  -:7:27: error: "1.5M" is not a value for up
      7 | allow net api.example.com up=1.5M down=0
        |                           ^~~~~~~
        = up=64K
  [121]

A qualifier without its value, and one twice:

  $ check <<'E'
  > allow net api.example.com methods
  > allow net api.example.com count=1 count=2
  > E
  -:2:27: error: "methods" needs a value: key=value
      2 | allow net api.example.com methods
        |                           ^~~~~~~
  -:3:35: error: "count" is given twice
      3 | allow net api.example.com count=1 count=2
        |                                   ^~~~~~~
  [121]

Ports to listen on:

  $ check <<'E'
  > allow listen 0
  > allow listen http
  > E
  -:2:14: error: "0" is not a port
      2 | allow listen 0
        |              ^
        = as in listen 8080 or listen 8000-8010
  -:3:14: error: "http" is not a port
      3 | allow listen http
        |              ^~~~
        = as in listen 8080 or listen 8000-8010
  [121]

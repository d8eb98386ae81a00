"""gRPC: one call and streams in both directions over HTTP/2, with what comes behind the answer."""
from kit import PYTHON, need, net, settle, test, town

NAME, EVIL = "grpc.example.test", "evil.example.test"
SERVER = '''
import sys
from concurrent import futures
import grpc

def unary(request, context):
    context.set_trailing_metadata((("behind", "unary"),))
    return b"echo " + request

def down(request, context):
    for i in range(100):
        yield b"%d" % i
    context.set_trailing_metadata((("behind", "down"),))

def both(requests, context):
    for r in requests:
        yield b"echo " + r
    context.set_trailing_metadata((("behind", "both"),))

def fails(request, context):
    context.set_trailing_metadata((("behind", "fails"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as it should")

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return {"/demo.Echo/Unary": grpc.unary_unary_rpc_method_handler(unary), "/demo.Echo/Down": grpc.unary_stream_rpc_method_handler(down),
                "/demo.Echo/Both": grpc.stream_stream_rpc_method_handler(both), "/demo.Echo/Fails": grpc.unary_unary_rpc_method_handler(fails),
                "/demo.Closed/Unary": grpc.unary_unary_rpc_method_handler(unary)}.get(details.method)

server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Handler()])
pair = [(open(sys.argv[2], "rb").read(), open(sys.argv[1], "rb").read())]
for port in sys.argv[3:]:
    assert server.add_secure_port("0.0.0.0:" + port, grpc.ssl_server_credentials(pair))
server.start()
server.wait_for_termination()
'''
CLIENT = '''
import json, sys
import grpc

def attempt(f):
    try: return f()
    except grpc.RpcError as e: return [e.code().name, dict(e.trailing_metadata() or ()).get("behind"), e.details()[:120]]

def calls(where):
    with grpc.secure_channel(where, grpc.ssl_channel_credentials()) as c:
        def unary(path):
            r, call = c.unary_unary(path).with_call(b"hello", timeout=10)
            return [r.decode(), dict(call.trailing_metadata()).get("behind")]
        def down():
            s = c.unary_stream("/demo.Echo/Down")(b"", timeout=10)
            return [len(list(s)), dict(s.trailing_metadata()).get("behind")]
        def both():
            def say():  # each only when the one before was answered: nobody may wait for the end
                for i in range(20):
                    while len(got) < i: pass
                    yield b"%d" % i
            got = []
            s = c.stream_stream("/demo.Echo/Both")(say(), timeout=10)
            for m in s: got.append(m)
            return [len(got), dict(s.trailing_metadata()).get("behind")]
        first = attempt(lambda: unary("/demo.Echo/Unary"))
        if len(sys.argv) > 2 and where != sys.argv[1]: return first[:1]
        return [first, attempt(down), attempt(both), attempt(lambda: unary("/demo.Echo/Fails")), attempt(lambda: unary("/demo.Closed/Unary"))]

print(json.dumps([calls(w) for w in sys.argv[1:]]))
'''
WHOLE = [["echo hello", "unary"], [100, "down"], [20, "both"], ["FAILED_PRECONDITION", "fails", "as it should"]]
OPEN = ["echo hello", "unary"]


@test("a gRPC client", seconds=200)
def grpc(w):
    if not need(w, slow=True) or not need(w, module="grpc"):
        return
    (w.dir / "server.py").write_text(SERVER)
    w.zone(NAME, net.FIRST)
    w.zone(EVIL, net.SECOND)
    w.tell("spawn", argv=[PYTHON, str(w.dir / "server.py"), str(w.certs / "leaf.pem"), str(w.certs / "leaf.key"), "443", "8443"], port=443,
           log=str(w.dir / "grpc.log"), env={"PATH": w.env["PATH"]})
    bundle = settle(w)
    w.put("client.py", CLIENT)
    argv = [PYTHON, "client.py", f"{NAME}:443", f"{EVIL}:443", f"{NAME}:8443", f"{net.FIRST}:443"]
    r = w.call(argv, env={**w.env, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(bundle)}, timeout=60)
    w.same(parse(r), [[*WHOLE, OPEN], ["echo hello"], ["echo hello"], ["echo hello"]], "outside every call works, everywhere", r)
    w.forget()
    trust = ["--env", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=/etc/ssl/certs/ca-certificates.crt"]
    r = w.run(*argv, opts=[*w.rules(f"https://{NAME}"), *trust], timeout=90)
    w.same(parse(r), [[*WHOLE, OPEN], ["UNAVAILABLE"], ["UNAVAILABLE"], ["UNAVAILABLE"]], "in a tunnel, to the name that is allowed", r)
    r = w.run(*argv, opts=w.rules(f"https://{NAME}/demo.Echo/* methods=POST"), timeout=90)
    got = parse(r)
    w.same([got[0][:4], *got[1:]] if got else got, [WHOLE, ["UNAVAILABLE"], ["UNAVAILABLE"], ["UNAVAILABLE"]], "read: one call, streams, and what comes behind them", r)
    w.ok(got and got[0][4][0] == "PERMISSION_DENIED", "a service that no rule names is refused as gRPC refuses", r)
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, 443)}, "the world saw nothing else")
    read = [e for e in w.net_events("request") if e["answer"] == "allow"]
    w.same(sorted({e["path"] for e in read}), ["/demo.Echo/Both", "/demo.Echo/Down", "/demo.Echo/Fails", "/demo.Echo/Unary"], "each call is on record", read)


def parse(r):
    try:
        return net.json.loads(r.out)
    except ValueError:
        return None

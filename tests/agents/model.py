"""model.py - a world in which the models of agents answer: from a script, over TLS, and with everything they hear kept.

A script is a list of shell commands. With each turn of its conversation the model asks for the next one to be run, and
when all have been, it says "done". It speaks just enough of the Messages and the Responses API for the real clients.
"""
import asyncio
import json
import ssl
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "net"))
import world  # noqa: E402

DONE = "All of it is done."


class Request:
    def __init__(self, method, path, fields, body):
        self.method, self.path, self.fields, self.body = method, path, fields, body

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


async def read_request(reader):
    """The next request, or None at the end."""
    line = (await reader.readline()).decode("latin1").split()
    if len(line) != 3:
        return None
    fields = {}
    while (field := (await reader.readline()).decode("latin1").strip()):
        key, _, value = field.partition(":")
        fields[key.lower()] = value.strip()
    body = b""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        while n := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(n)
            await reader.readline()
        await reader.readline()
    elif "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    return Request(line[0], line[1], fields, body)


# --- the Messages API ---

def messages(request, script):
    """Events of the answer to a request of Claude."""
    asked = request.json()
    tools = {t.get("name") for t in asked.get("tools", [])}
    turn = sum(b.get("type") == "tool_result" for m in asked.get("messages", [])
               for b in (m["content"] if isinstance(m["content"], list) else []))
    if "Bash" in tools and turn < len(script):
        block = {"type": "tool_use", "id": f"toolu_{turn:04}", "name": "Bash", "input": {}}
        call = json.dumps({"command": script[turn], "description": f"step {turn}"})
        delta, stop = {"type": "input_json_delta", "partial_json": call}, "tool_use"
    else:
        block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": DONE}, "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": f"msg_{turn:04}", "type": "message", "role": "assistant", "model": asked.get("model", ""), "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    if not asked.get("stream"):
        content = [{"type": "text", "text": DONE}]
        return {**message, "content": content, "stop_reason": "end_turn"}
    return [("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}),
            ("message_stop", {})]


# --- the Responses API ---

def call_of(command, turn):
    """This client writes programs that call its tools; ours calls the one for shell commands and shows what came back."""
    code = f"const r = await tools.exec_command({{cmd: {json.dumps(command)}, yield_time_ms: 20000}}); text(JSON.stringify(r));"
    return {"type": "custom_tool_call", "id": f"ctc_{turn:04}", "call_id": f"call_{turn:04}", "name": "exec", "input": code,
            "status": "completed"}


def responses(request, script):
    """Events of the answer to a request of Codex."""
    asked = request.json()
    turn = sum(i.get("type") == "custom_tool_call_output" for i in asked.get("input", []))
    if turn < len(script):
        item = call_of(script[turn], turn)
    else:
        item = {"type": "message", "id": f"msg_{turn:04}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": DONE, "annotations": []}]}
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
    response = {"id": f"resp_{turn:04}", "object": "response", "model": asked.get("model", ""), "output": []}
    return [("response.created", {"response": {**response, "status": "in_progress"}}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": {**response, "status": "completed", "output": [item], "usage": usage}})]


ANSWERS = {("POST", "/v1/messages"): messages, ("POST", "/v1/responses"): responses,
           ("POST", "/v1/messages/count_tokens"): lambda r, s: {"input_tokens": 10}}


def answer(request, script):
    """(status, kind of content, body)"""
    if "websocket" in request.fields.get("upgrade", ""):  # they go on without
        return 426, "text/plain", b"no web sockets here"
    found = ANSWERS.get((request.method, request.path.split("?")[0]))
    if not found:
        return 404, "application/json", b'{"type":"error","error":{"type":"not_found_error","message":"not here"}}'
    said = found(request, script)
    if isinstance(said, dict):
        return 200, "application/json", json.dumps(said).encode()
    return 200, "text/event-stream", b"".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode() for kind, data in said)


class Models(world.World):
    """The world of tests/net, with models in it."""

    def __init__(self, only_first):
        super().__init__(only_first)
        self.heard = []

    async def model(self, port, script, cert, key):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)

        async def serve(reader, writer):
            try:
                while request := await read_request(reader):
                    status, kind, body = answer(request, script)
                    self.heard.append({"host": request.fields.get("host"), "method": request.method, "path": request.path, "status": status,
                                       "fields": request.fields, "body": request.body.decode("utf-8", "replace")})
                    writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                    await writer.drain()
            except (OSError, ValueError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()
        await asyncio.start_server(serve, "0.0.0.0", port, ssl=tls, limit=1 << 20)

    async def hear(self):
        return self.heard


def main(boss, only_first=False):
    asyncio.run(Models(only_first).main(boss))

"""A server that speaks OpenAI's chat API over real HTTP and says what it was told to say, for tests of clients."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "small-1"
ANSWERED = "small-1-2026-01-01"


@dataclass
class Answer:
    """What the server answers to one request.

    Attributes:
        body: the JSON body; None sends `chunks`.
        chunks: the data of each event of a stream; a text is sent as it stands.
        status: the HTTP status.
        cut: whether the connection is broken off in front of the end.
        zipped: whether the body is compressed.
        at_once: whether all events of a stream arrive together.
    """

    body: Any = None
    chunks: list[Any] = field(default_factory=list)
    status: int = 200
    cut: bool = False
    zipped: bool = False
    at_once: bool = False


@dataclass
class Server:
    """A running server: where it listens, what it was sent, and what it still has to say."""

    url: str
    answers: list[Answer]
    requests: list[tuple[str, Any]] = field(default_factory=list)

    def says(self, *answers: Answer) -> None:
        """Queue answers."""
        self.answers.extend(answers)


def completion(message: dict[str, Any], finish_reason: str = "stop", **members: Any) -> Answer:
    """Return a whole reply."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": ANSWERED}
    return Answer({**head, "choices": [choice], "usage": usage, **members})


def call(name: str, arguments: str, call_id: str = "call-1") -> dict[str, Any]:
    """Return a call of a tool, as a message has it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def stream(*deltas: dict[str, Any], finish_reason: str | None = "stop", done: bool = True, **options: Any) -> Answer:
    """Return a reply in pieces, its usage at the end."""
    head = {"id": "chatcmpl-2", "object": "chat.completion.chunk", "created": 2, "model": ANSWERED}
    pieces = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish_reason is not None:
        pieces.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]})
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        pieces.append({**head, "choices": [], "usage": usage})
    return Answer(chunks=[": a comment", *pieces, *(["data: [DONE]"] if done else [])], **options)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        self.server.state.requests.append((self.path, json.loads(self.rfile.read(length) or b"null")))
        answer = self.server.state.answers.pop(0)
        if answer.chunks:
            self._stream(answer)
            return
        body = json.dumps(answer.body).encode()
        body = gzip.compress(body) if answer.zipped else body
        self.send_response(answer.status)
        self.send_header("content-type", "application/json")
        if answer.zipped:
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        lines = [each if isinstance(each, str) else "data: " + json.dumps(each) for each in answer.chunks]
        events = [(line + "\n\n").encode() for line in lines]
        # events are cut anywhere on their way
        pieces = [b"".join(events)] if answer.at_once else [cut for each in events for cut in (each[:9], each[9:])]
        for piece in filter(None, pieces):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if answer.cut:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as the base class has it
        """Say nothing."""


class _Listener(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away, which is what some are for."""


@contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    """Run a server in a thread for the time of the block."""
    server = _Listener(("127.0.0.1", 0), _Handler)
    state = Server(f"http://127.0.0.1:{server.server_address[1]}/v1", list(answers))
    server.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

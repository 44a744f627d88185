"""Small real peers: an HTTP server and a WebSocket server that follow a script, on free ports."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve


@dataclass(frozen=True, slots=True)
class Answer:
    """What the peer says next; `is_dropped` closes the connection instead."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()
    is_dropped: bool = False

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HttpPeer:
    url: str
    answers: list[Answer]
    seen: list[Seen] = field(default_factory=list)

    def next_answer(self) -> Answer:
        """The last answer is given again and again."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextlib.contextmanager
def http_peer(*answers: Answer) -> Iterator[HttpPeer]:
    peer = HttpPeer("", list(answers) or [Answer()])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            headers = {name.lower(): value for name, value in self.headers.items()}
            peer.seen.append(Seen(self.command, self.path, headers, self.rfile.read(length)))
            answer = peer.next_answer()
            if answer.is_dropped:
                self.close_connection = True
                return
            content = b"" if answer.status == 204 else answer.content()
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    peer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield peer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


Script = Callable[[ServerConnection], None]


@dataclass
class StreamPeer:
    """Each connection runs the next script; the subscribe messages are kept."""

    url: str = ""
    subscribed: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@contextlib.contextmanager
def stream_peer(*scripts: Script, refusals: tuple[int, ...] = ()) -> Iterator[StreamPeer]:
    """Refuses the first upgrades with `refusals`, then plays the scripts."""
    peer = StreamPeer()
    left, refused = list(scripts), list(refusals)

    def refuse(connection: ServerConnection, request: Request) -> Response | None:
        if not refused:
            return None
        return connection.respond(refused.pop(0), '{"error":"unauthorized","message":"No such key."}')

    def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        peer.keys.append(connection.request.headers.get("Authorization"))
        peer.subscribed.append(msgspec.json.decode(connection.recv()))
        connection.send('{"type":"subscribed","inbox_ids":[],"event_types":[]}')
        left.pop(0)(connection)

    with serve(handle, "127.0.0.1", 0, process_request=refuse) as server:
        peer.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield peer
        finally:
            server.shutdown()
            thread.join()

"""A door before a server that passes every request on and keeps what was asked and answered."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length", "date", "server")


@dataclass(frozen=True)
class Exchange:
    method: str
    target: str
    request_type: str
    request: bytes
    status: int
    answer_type: str
    answer: bytes

    @property
    def body(self) -> Any:
        is_json = self.request_type.startswith("application/json") and self.request
        return json.loads(self.request) if is_json else None


@contextmanager
def recording(server_port: int) -> Iterator[tuple[int, list[Exchange]]]:
    """The port to ask, and what was exchanged, in its order."""
    exchanges: list[Exchange] = []

    class App(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            upstream = http.client.HTTPConnection("127.0.0.1", server_port)
            upstream.request(self.command, self.path, body, dict(self.headers))
            answer = upstream.getresponse()
            content = answer.read()
            exchanges.append(
                Exchange(
                    method=self.command,
                    target=self.path,
                    request_type=self.headers.get("Content-Type", ""),
                    request=body,
                    status=answer.status,
                    answer_type=answer.headers.get("Content-Type", ""),
                    answer=content,
                )
            )
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            upstream.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

        def log_message(self, format: str, *values: object) -> None:
            """Tests are silent."""

    door = ThreadingHTTPServer(("127.0.0.1", 0), App)
    thread = Thread(target=door.serve_forever)
    thread.start()
    try:
        yield door.server_address[1], exchanges
    finally:
        door.shutdown()
        thread.join()
        door.server_close()

"""The official conformance suite of MCP, run against an address, through a proxy that adds what it lacks."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import generators

REVISION = "2026-07-28"
TIMED = re.compile(r"-\d{4}-\d\d-\d\dT.*$")
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}
FIRST = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
Answer = tuple[int, list[tuple[str, str]], bytes]


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        status, fields, content = self.ask(body)
        self.send_response_only(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_OPTIONS = pass_on

    def ask(self, body: bytes) -> Answer:
        raise NotImplementedError

    def log_message(self, format: str, *values: object) -> None:
        return


@contextmanager
def at_loopback(kind: type[Proxy]) -> Iterator[str]:
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}/mcp"
    finally:
        proxy.shutdown()
        proxy.server_close()


@contextmanager
def with_key(base_url: str, key: str) -> Iterator[str]:
    """The suite has no key to send."""
    target = urlsplit(base_url)

    class WithKey(Proxy):
        def ask(self, body: bytes) -> Answer:
            server = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
            own = f"127.0.0.1:{self.connection.getsockname()[1]}"
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                # It stands for the server, so its own address counts as the server's.
                server.putheader(name, value.replace(own, target.netloc))
            server.putheader("Authorization", f"Bearer {key}")
            server.endheaders(body)
            answer = server.getresponse()
            fields = [each for each in answer.getheaders() if each[0].lower() not in HOP_BY_HOP]
            content = answer.read()
            server.close()
            return answer.status, fields, content

    with at_loopback(WithKey) as url:
        yield url


@contextmanager
def of_command(arguments: list[str], environment: dict[str, str]) -> Iterator[str]:
    """The suite speaks HTTP alone: each request becomes a line to the command, and a line its answer."""
    turn = threading.Lock()
    with subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        writing, reading = command.stdin, command.stdout
        writing.write(json.dumps(FIRST).encode() + b"\n")  # a connection keeps the revision of its first line
        writing.flush()
        reading.readline()

        class AsLines(Proxy):
            def ask(self, body: bytes) -> Answer:
                try:
                    request: Any = json.loads(body)
                except ValueError:
                    return 400, [], b""
                with turn:
                    writing.write(json.dumps(request).encode() + b"\n")
                    writing.flush()
                    if not isinstance(request, dict) or request.get("id") is None:
                        return 202, [], b""
                    for line in reading:
                        if json.loads(line).get("id") == request["id"]:
                            return 200, [("Content-Type", "application/json")], line
                return 500, [], b""

        with at_loopback(AsLines) as url:
            yield url
        command.terminate()


def run(url: str, folder: Path, *asked: str) -> dict[str, list[str]]:
    """Each scenario of the revision, or that was asked for, with the checks of it that failed."""
    suite = generators.NODE_FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance"
    command = [str(generators.NEWEST_NODE), str(suite / "dist" / "index.js"), "server", "--url", url]
    done = subprocess.run(
        [*command, *(asked or ("--requirements", REVISION)), "-o", str(folder)],
        capture_output=True,
        text=True,
        env=generators.kept_by_node(),
        timeout=300,
    )
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("checks.json")):
        checks = json.loads(file.read_text())
        name = TIMED.sub("", file.parent.name.removeprefix("server-"))
        found[name] = [check["id"] for check in checks if check["status"] == "FAILURE"]
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    return found

"""The official conformance suite of MCP, run against an address, with the key added on the way."""

import http.client
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests import generators

REVISION = "2026-07-28"
TIMED = re.compile(r"-\d{4}-\d\d-\d\dT.*$")
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def with_key(base_url: str, key: str) -> Iterator[str]:
    """A proxy on loopback: the suite has no key to send."""
    target = urlsplit(base_url)

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            server = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
            is_own = self.headers["Host"] == f"127.0.0.1:{self.connection.getsockname()[1]}"
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                # It stands for the server, so its own address counts as the server's.
                server.putheader(
                    name, value.replace(self.headers["Host"], target.netloc) if is_own else value
                )
            server.putheader("Authorization", f"Bearer {key}")
            server.endheaders(body)
            answer = server.getresponse()
            content = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            server.close()

        do_GET = do_POST = do_DELETE = do_OPTIONS = pass_on

        def log_message(self, format: str, *values: object) -> None:
            return

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()
        proxy.server_close()


def run(url: str, folder: Path) -> dict[str, list[str]]:
    """Each scenario of the revision with the checks of it that failed."""
    suite = generators.NODE_FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance"
    command = [str(generators.NEWEST_NODE), str(suite / "dist" / "index.js"), "server", "--url", url]
    done = subprocess.run(
        [*command, "--requirements", REVISION, "-o", str(folder)],
        capture_output=True,
        text=True,
        env=generators.kept_by_node(),
        timeout=300,
    )
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("checks.json")):
        checks = json.loads(file.read_text())
        found[TIMED.sub("", file.parent.name.removeprefix("server-"))] = [
            check["id"] for check in checks if check["status"] == "FAILURE"
        ]
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    return found

"""The documents, held to the code: their examples run, and their tables are complete.

A block marked `sh` is run against a server of its own, in one shell a document; `console` blocks are not.
"""

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click
import httpx2
import pytest
import typer.main

from bench import catalogue
from postroom import errors
from postroom.__main__ import app
from postroom.config import DEFAULTS
from postroom.web.routes import ROUTES
from postroom.web.routing import ACCOUNT

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "postroom"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TOKEN = "pr_the_key_that_make_run_printed"  # as the documents write it
WRITTEN_PORTS = {"http": "8025", "smtp": "2525", "endpoint": "8026"}


def named(document: Path) -> str:
    return str(document.relative_to(ROOT))


def read(name: str) -> str:
    return (ROOT / name).read_text()


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Desk:
    """Where a reader works: a folder with the command in it, and a server that runs in the same folder."""

    folder: Path
    environment: dict[str, str]
    ports: dict[str, int]

    def run(self, script: str) -> "subprocess.CompletedProcess[str]":
        for name, written in WRITTEN_PORTS.items():
            script = re.sub(rf"\b{written}\b", str(self.ports[name]), script)
        return subprocess.run(
            ["sh", "-eu", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Endpoint(BaseHTTPRequestHandler):
    """A customer's webhook that is content with everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        """Tests are silent."""


@contextmanager
def listening_endpoint() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def put_command(path: Path, *command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    path.chmod(0o755)


def lay_out_commands(folder: Path, with_curl: bool) -> None:
    put_command(folder / ".venv/bin/postroom", sys.executable, "-m", "postroom")
    put_command(folder / ".venv/bin/python", sys.executable)
    bare = (sys.executable, "-I", "-S")  # a reader's python3 has the standard library alone
    put_command(folder / "bin/python3", *bare)
    if not with_curl:
        put_command(folder / "bin/curl", *bare, str(ROOT / "tests" / "curl_stand_in.py"))


@contextmanager
def desk(folder: Path, with_curl: bool) -> Iterator[Desk]:
    lay_out_commands(folder, with_curl)
    ports = {"http": free_port(), "smtp": free_port()}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")} | {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "POSTROOM_HTTP": f"127.0.0.1:{ports['http']}",
        "POSTROOM_SMTP": f"127.0.0.1:{ports['smtp']}",
        "POSTROOM_OUTBOUND": "smtp://127.0.0.1:9",  # nobody listens: mail to elsewhere waits in the queue
        "POSTROOM_API_KEY": TOKEN,
    }
    command = [".venv/bin/postroom", "serve"]
    with listening_endpoint() as endpoint, open(folder / "log.txt", "w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log)
        try:
            assert process.stdout is not None
            assert b"is ready" in process.stdout.readline(), (folder / "log.txt").read_text()
            yield Desk(folder, environment, {**ports, "endpoint": endpoint})
        finally:
            process.terminate()
            process.communicate()


def run_examples(document: Path, folder: Path, with_curl: bool) -> str:
    with desk(folder, with_curl) as reader:
        done = reader.run("\n".join(blocks(document, "sh")))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if blocks(path, "sh")], ids=named)
def test_the_examples_of_a_document_run_from_top_to_bottom(document: Path, tmp_path: Path) -> None:
    run_examples(document, tmp_path, with_curl=shutil.which("curl") is not None)


def test_the_first_mail_can_be_read_where_curl_is_missing(tmp_path: Path) -> None:
    shown = run_examples(ROOT / "README.md", tmp_path, with_curl=False)
    assert "Yes, I am." in shown
    assert "['482913']" in shown

"""From SMTP to the stream and to a webhook: the same bytes, which the documented snippets accept."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from postroom.assembly import serving
from tests.api.endpoint import Endpoint, running_endpoint
from tests.api.test_stream import open_stream, subscribe
from tests.api.test_webhooks import set_webhook
from tests.conftest import Server, api_client, settings
from tests.doubles import FakeClock
from tests.mail.keys import signing_key
from tests.programs import path_of

PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"

# Everything that two writers of JSON might spell differently.
AWKWARD = "".join(
    [
        *map(chr, range(0x20, 0x180)),
        "\u2028\u2029\u200d\ufeff\ufffd\uffff\U0001f4ee\U0010ffff",
        '"\\/</script>&amp;\t',
        "1e3 -0 0.10 \\u0041",
    ]
)


@dataclass(frozen=True)
class Request:
    secret: str
    timestamp: str
    signature: str
    body: str


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """In real time, since the snippets refuse an old timestamp."""
    async with serving(settings(tmp_path), make_key=signing_key) as postroom:
        assert postroom.first_token is not None
        async with api_client(postroom.resources.config.base_url, postroom.first_token) as api:
            yield Server(postroom.resources, api, postroom.first_token, FakeClock(), postroom.smtp_port)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running_endpoint() as peer:
        yield peer


def snippet(language: str) -> str:
    """The block of code that the page shows."""
    found = re.search(rf"<!-- snippet: {language} -->\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def run(command: list[str], program: str, request: Request) -> list[bool]:
    done = subprocess.run(
        [*command, program], input=json.dumps(asdict(request)), capture_output=True, text=True, check=True
    )
    verdicts: list[bool] = json.loads(done.stdout)
    return verdicts


PYTHON_CALLS = """
import json, sys
r = json.load(sys.stdin)
def ask(body, **changed):
    q = {**r, **changed}
    return is_from_postroom(q["secret"], q["timestamp"], q["signature"], body.encode())
old = str(int(r["timestamp"]) - 301)
print(json.dumps([ask(r["body"]), ask(r["body"] + " "), ask(r["body"], secret="x"),
                  ask(r["body"], timestamp=old), ask(r["body"], signature=chr(0x20ac))]))
"""
NODE_CALLS = """
const r = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const ask = (body, changed = {}) => {
  const q = { ...r, ...changed };
  return isFromPostroom(q.secret, q.timestamp, q.signature, body);
};
const old = String(Number(r.timestamp) - 301);
console.log(JSON.stringify([ask(r.body), ask(JSON.parse(r.body)), ask(r.body + " "),
  ask(r.body, { secret: "x" }), ask(r.body, { timestamp: old }), ask(r.body, { signature: "zz" })]));
"""


async def receive_one(server: Server, endpoint: Endpoint) -> tuple[bytes, Request]:
    """One awkward mail by SMTP: the frame at the stream, and the request at the endpoint."""
    await server.new_inbox("hello")
    secret = (await set_webhook(server, endpoint.url))["secret"]
    head = (
        "From: \u00c4lice <alice@example.com>\r\nTo: hello@postroom.localhost\r\nSubject: \u2028 \u20ac\r\n"
    )
    kind = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n"
    async with open_stream(server) as stream:
        await subscribe(stream)
        await server.deliver(f"{head}{kind}\r\n{AWKWARD}\r\n".encode(), "hello")
        async with asyncio.timeout(120):
            frame = await stream.recv(decode=False)
    await endpoint.wait_for(1)
    headers, body = endpoint.requests[0]
    assert frame == body
    return frame, Request(secret, headers["x-timestamp"], headers["x-signature"], body.decode())


async def test_stream_and_webhook_carry_the_same_bytes_and_the_python_snippet_accepts_them(
    server: Server, endpoint: Endpoint
) -> None:
    frame, request = await receive_one(server, endpoint)
    assert "\u0101" in json.loads(frame)["message"]["body_text"]
    program = snippet("python") + PYTHON_CALLS
    verdicts = await asyncio.to_thread(run, [sys.executable, "-c"], program, request)
    assert verdicts == [True, False, False, False, False]


@pytest.mark.needs("node")
async def test_the_node_snippet_accepts_the_raw_and_the_parsed_body(
    server: Server, endpoint: Endpoint
) -> None:
    _, request = await receive_one(server, endpoint)
    program = snippet("node") + NODE_CALLS
    verdicts = await asyncio.to_thread(run, [path_of("node"), "-e"], program, request)
    assert verdicts == [True, True, False, False, False, False]

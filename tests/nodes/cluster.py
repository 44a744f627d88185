"""Three real nodes: processes on one PostgreSQL and one S3 store, behind HAProxy."""

import asyncio
import contextlib
import os
import signal
import smtplib
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from tests import memory_folder, programs, warm_start
from tests.lossy_proxy import LossyProxy, lossy_port, lossy_proxy
from tests.object_store import BUCKET, CREDENTIALS, free_ports, running_object_store
from tests.plain_transport import http_client
from tests.postgres_engine import OF_TESTS, Engine, running_engine

TOKEN = "pr_nodes-0123456789abcdef"
PATIENCE_SECONDS = 120
NODES = 3
OF_CLUSTER = OF_TESTS | {"synchronous_commit": "on"}  # what was committed outlives a crash of PostgreSQL

HAPROXY = """
global
    log /dev/null local0
defaults
    timeout connect 2s
    timeout client 120s
    timeout server 120s
    timeout check 10s
    retries 3
    option redispatch
frontend web
    mode http
    bind 127.0.0.1:{web}
    http-request return status 200 content-type text/plain lf-string "%[nbsrv(nodes_web)]" if {{ path /seen }}
    default_backend nodes_web
backend nodes_web
    mode http
    balance roundrobin
    option httpchk GET /ready
    retry-on conn-failure empty-response response-timeout 503
    default-server check inter 200ms fall 1 rise 1
{web_servers}
frontend mail
    mode tcp
    bind 127.0.0.1:{mail}
    default_backend nodes_mail
backend nodes_mail
    mode tcp
    balance roundrobin
{mail_servers}
"""


@dataclass(slots=True)
class Node:
    number: int
    folder: Path
    ports: dict[str, int]
    settings: dict[str, str]
    process: warm_start.Process | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self) -> None:
        with (self.folder / "log").open("a") as log:
            self.process = warm_start.start(os.environ | CREDENTIALS | self.settings, log)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert "is ready" in said, self.log

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        self._tell(signal.SIGSTOP)

    def thaw(self) -> None:
        self._tell(signal.SIGCONT)

    def _tell(self, what: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(what)

    def client(self) -> httpx2.AsyncClient:
        return client_of(self.ports["http"])

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            left = self.process.poll()
            assert left is None, f"node {self.number} had ended with {left}:\n{self.log[-4000:]}"
            self.process.send_signal(how)
            self.process.wait(PATIENCE_SECONDS)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@dataclass(slots=True)
class Cluster:
    nodes: list[Node]
    ports: dict[str, int]  # of HAProxy
    database: LossyProxy
    store: LossyProxy
    engine: Engine  # of the database, past the proxy

    @property
    def database_url(self) -> str:
        return self.engine.url

    def client(self) -> httpx2.AsyncClient:
        """Through HAProxy, which chooses a node for each request."""
        return client_of(self.ports["web"])

    async def is_all_seen(self) -> bool:
        """Whether HAProxy knows that every node is ready."""
        async with self.client() as api:
            return (await api.get("/seen")).text == str(NODES)

    async def new_inbox(self, name: str) -> str:
        async with self.client() as api:
            answer = await ask_patiently(partial(api.post, "/v1/inboxes", json={"mailboxName": name}))
            assert answer.status_code == 201, answer.text
            inbox_id: str = answer.json()["id"]
            return inbox_id

    async def messages_of(self, inbox_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            query = {"limit": "100", "offset": str(len(found))}
            page = await self.page(f"/v1/inboxes/{inbox_id}/messages", query)
            found += page["data"]
            if len(found) >= page["total"]:
                return found

    async def page(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        async with self.client() as api:
            answer = await ask_patiently(partial(api.get, path, params=query))
            page: dict[str, Any] = answer.json()
            return page


async def ask_patiently(ask: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
    """HAProxy may still believe that every node is away, which it asks them from time to time."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (answer := await ask()).status_code == 503:
            await asyncio.sleep(0.05)
    return answer


def client_of(port: int) -> httpx2.AsyncClient:
    return http_client(f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}, PATIENCE_SECONDS)


def hand_over(port: int, name: str, raw: bytes) -> int:
    """The last answer of the dialogue."""
    try:
        with smtplib.SMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS) as smtp:
            smtp.sendmail("a@example.com", [f"{name}@postroom.localhost"], raw)
            return 250
    except smtplib.SMTPRecipientsRefused as refused:
        return next(iter(refused.recipients.values()))[0]
    except smtplib.SMTPResponseException as refused:
        return refused.smtp_code


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(NODES) as side_by_side:
        starting = side_by_side.submit(stack.enter_context, running_object_store())
        engine = stack.enter_context(running_engine(memory_folder.choose(), settings=OF_CLUSTER))
        object_store = starting.result()
        database, url = stack.enter_context(lossy_proxy(engine.url))
        store, store_port = stack.enter_context(lossy_port(object_store.ports["s3"]))
        ports = free_ports(["web", "mail"])
        shared = {
            "POSTROOM_DATABASE_URL": url,
            "POSTROOM_BLOB_URL": f"s3://{BUCKET}/nodes?endpoint=http://127.0.0.1:{store_port}&region=us-east-1",
            "POSTROOM_BASE_URL": f"http://127.0.0.1:{ports['web']}",
            "POSTROOM_API_KEY": TOKEN,
            "POSTROOM_PLAN": "business",
            "POSTROOM_WORKERS": "0",
            "POSTROOM_DRAIN_SECONDS": "1",
        }
        nodes = [new_node(number, folder, shared) for number in range(NODES)]
        for node in nodes:
            stack.callback(node.kill)
        list(side_by_side.map(Node.start, nodes))  # one of them migrates, the others wait for it
        stack.enter_context(running_haproxy(folder, ports, nodes))
        yield Cluster(nodes, ports, database, store, engine)


def new_node(number: int, folder: Path, shared: dict[str, str]) -> Node:
    own, ports = folder / f"node-{number}", free_ports(["http", "smtp"])
    own.mkdir()
    settings = {
        **shared,
        "POSTROOM_DATA_DIR": str(own / "data"),
        "POSTROOM_HTTP": f"127.0.0.1:{ports['http']}",
        "POSTROOM_SMTP": f"127.0.0.1:{ports['smtp']}",
    }
    return Node(number, own, ports, settings)


@contextlib.contextmanager
def running_haproxy(folder: Path, ports: dict[str, int], nodes: list[Node]) -> Iterator[None]:
    web = [f"    server n{node.number} 127.0.0.1:{node.ports['http']}" for node in nodes]
    mail = [
        f"    server n{node.number} 127.0.0.1:{node.ports['smtp']} track nodes_web/n{node.number}"
        for node in nodes
    ]
    path = folder / "haproxy.cfg"
    path.write_text(HAPROXY.format(**ports, web_servers="\n".join(web), mail_servers="\n".join(mail)))
    process = subprocess.Popen([programs.path_of("haproxy"), "-db", "-q", "-f", str(path)])
    try:
        wait_until_it_carries(ports["web"])
        yield
    finally:
        process.terminate()
        process.wait()


def wait_until_it_carries(port: int) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        with contextlib.suppress(httpx2.HTTPError):
            if (
                httpx2.get(
                    f"http://127.0.0.1:{port}/ready", timeout=PATIENCE_SECONDS, verify=False
                ).status_code
                == 200
            ):
                return
        time.sleep(0.05)
    raise AssertionError("HAProxy carries nothing")

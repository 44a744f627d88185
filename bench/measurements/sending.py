"""Sends accepted a second (durable, one recipient, 1 kB), and mails delivered, signed, to a relay."""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import uvloop
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from bench.consumption import of_family
from bench.http_load import Load, LoadReport, run_load
from bench.processes import HOST, Server, running, scratch_folder
from bench.results import Aim, Result, at_least_times_peer
from bench.rounds import alternate, compare
from postroom import config
from postroom.accounts import accounts, keys
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import SystemClock
from postroom.first_start import make_first_account, make_service_key
from postroom.mailbox import inboxes
from postroom.net.dns import Resolver
from postroom.operations.sending.send import SendBody, to_order
from postroom.outward.send import send_mail
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests.ports import free_port
from tests.postgres_engine import unprivileged_user

SENDS_OF_AN_INBOX = 10  # the limit of a minute
INBOXES_OF_AN_ACCOUNT = 50
DOMAINS = 100
PEER = "FastAPI, one row"  # bench.peers.one_row_a_send, which takes long to load
TEXT = "All work and no play makes a dull mail. " * 25
SMTP_SINK = shutil.which("smtp-sink", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
DEADLINE_SECONDS = 120
SIGNATURES = 200  # timed alone
MANY_TIMES = 6  # so many connections bring up to 100 sends that wait for the same commit


@dataclass(frozen=True, slots=True)
class SendLoad:
    connections: int
    sends: int
    rounds: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Sender:
    caller: Caller
    token: str
    inbox_id: str


@dataclass(frozen=True, slots=True)
class Delivered:
    count: int
    seconds: float
    cpu_seconds: float


LOAD = SendLoad(connections=32, sends=1_500, rounds=5, deliveries=2_000)


def measure(load: SendLoad = LOAD) -> list[Result]:
    many = replace(load, connections=load.connections * MANY_TIMES)
    return [_accepted(load), _accepted(many), *_delivered(load)]


def _accepted(load: SendLoad) -> Result:
    """Delivery is measured apart: here it waits at a relay that takes connections and says nothing."""
    with scratch_folder() as folder, _silent_relay() as relay_port:
        senders = uvloop.run(seed(folder / "data", load.sends * load.rounds // SENDS_OF_AN_INBOX))
        requests = (_request(sender, number) for number, sender in turns(senders))
        with _postroom(folder / "data", relay_port) as postroom, _peer(folder) as peer:

            def run(server: Server) -> LoadReport:
                chosen = list(itertools.islice(requests, load.sends)) if server is postroom else peer_requests
                return run_load(Load(server.port, chosen, load.connections, load.sends))

            peer_requests = [_request(senders[0], number) for number in range(100)]
            pairs = alternate(load.rounds, lambda: run(postroom), lambda: run(peer))
    rate = compare(pairs, lambda report: report.per_second)
    name = f"sends accepted on {load.connections} connections"
    return Result(name, rate.value, "sends/s", at_least_times_peer(2.5), rate.peer(PEER))


def turns(senders: list[Sender]) -> Iterator[tuple[int, Sender]]:
    return enumerate(sender for sender in senders for _ in range(SENDS_OF_AN_INBOX))


def _request(sender: Sender, number: int) -> str:
    content = json.dumps(body(number))
    return (
        f"POST /v1/inboxes/{sender.inbox_id}/send HTTP/1.1\r\nHost: {HOST}\r\n"
        f"Authorization: Bearer {sender.token}\r\nIdempotency-Key: {uuid.uuid4()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n{content}"
    )


def body(number: int) -> dict[str, str]:
    return {"to": f"p{number}@d{number % DOMAINS}.example", "subject": f"Mail {number}", "body": TEXT}


def _delivered(load: SendLoad) -> list[Result]:
    if SMTP_SINK is None:
        return []  # part of Debian's package postfix
    with scratch_folder() as folder, _sink(SMTP_SINK) as sink_port:
        uvloop.run(_queue_mails(folder, load.deliveries))
        with _postroom(folder, sink_port) as server:
            delivered = _watch(folder / "postroom.db", server.pid)
    each = delivered.cpu_seconds / delivered.count
    rate, signature = delivered.count / delivered.seconds, seconds_of_a_signature()
    return [
        Result("mails delivered to smtp-sink, signed", rate, "mails/s", Aim(400, is_ceiling=False)),
        Result("processor of a mail delivered", each * 1000, "ms"),
        Result("of that, its RSA-2048 signature", signature * 1000, "ms"),
        Result("share of the signature", signature / each, ""),
        Result("cores in use meanwhile", delivered.cpu_seconds / delivered.seconds, f"of {os.cpu_count()}"),
    ]


def seconds_of_a_signature() -> float:
    """Return the least processor time that an RSA-2048 signature takes here, whatever is around it."""
    key = rsa.generate_private_key(65537, 2048)
    found = []
    for _ in range(SIGNATURES):
        began = time.thread_time()
        key.sign(b"signed", padding.PKCS1v15(), hashes.SHA256())
        found.append(time.thread_time() - began)
    return min(found)


def _watch(database: Path, pid: int) -> Delivered:
    """From the moment the server answers to the last delivery."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        used = of_family(pid)
        first = _waiting(connection)
        started = time.perf_counter()
        while waiting := _waiting(connection):
            if time.perf_counter() > started + DEADLINE_SECONDS:
                raise RuntimeError(f"mails are still waiting: {waiting}")
            time.sleep(0.02)
        elapsed = time.perf_counter() - started
        (lost,) = connection.execute("select count(*) from deliveries where state <> 'delivered'").fetchone()
        if lost:
            raise RuntimeError(f"mails were not delivered: {lost}")
        return Delivered(first, elapsed, (of_family(pid) - used).cpu_seconds)


def _waiting(connection: sqlite3.Connection) -> int:
    """Counted in a small index, so that watching takes nothing from what is watched."""
    (waiting,) = connection.execute(
        "select count(*) from deliveries where state = 'pending' and kind = 'mail'"
    ).fetchone()
    return int(waiting)


async def seed(folder: Path, inbox_count: int) -> list[Sender]:
    settings = config.load({"POSTROOM_DATA_DIR": str(folder)})
    db = await open_database(settings, SystemClock().now())
    try:
        await db.write(make_first_account, settings, SystemClock().now())
        return await db.write(_add_senders, settings.domain, inbox_count, SystemClock().now())
    finally:
        await db.close()


def _add_senders(tx: Tx, domain: str, inbox_count: int, now: int) -> list[Sender]:
    """An inbox may send 10 mails a minute, so that load needs many."""
    senders = []
    for number in range(inbox_count):
        if number % INBOXES_OF_AN_ACCOUNT == 0:
            account = accounts.add(tx, f"bench {number}", "developer", now)
            token = keys.new_token()
            key = keys.add(tx, account.id, None, "bench", token, now)
        inbox = inboxes.add(tx, account.id, f"bench-{number}", None, "Bench", domain, now)
        senders.append(
            Sender(Caller(key.id, account.id, account.name, account.plan, Scope(account.id)), token, inbox.id)
        )
    return senders


async def _queue_mails(folder: Path, count: int) -> None:
    """Accepts mails without a server, so that all of them wait when it starts."""
    senders = await seed(folder, count // SENDS_OF_AN_INBOX)
    settings = config.load({"POSTROOM_DATA_DIR": str(folder)})
    clock = SystemClock()
    db = await open_database(settings, clock.now())
    resources = Resources(settings, db, LocalBlobs(folder / "blobs"), clock, Resolver(), asyncio.Event())
    try:
        await make_service_key(db, settings.domain, 0)  # as on every start but the first
        for number, sender in turns(senders):
            order = await to_order(sender.inbox_id, f"key-{number}", msgspec.convert(body(number), SendBody))
            await send_mail(resources, sender.caller, order)
    finally:
        await db.close()


@contextlib.contextmanager
def _postroom(folder: Path, relay_port: int) -> Iterator[Server]:
    port = free_port()
    settings = {
        "POSTROOM_DATA_DIR": str(folder),
        "POSTROOM_HTTP": f"{HOST}:{port}",
        "POSTROOM_SMTP": f"{HOST}:{free_port()}",
        "POSTROOM_OUTBOUND": f"smtp://{HOST}:{relay_port}",
    }
    with running("postroom", ["serve"], port, settings) as server:
        yield server


@contextlib.contextmanager
def _peer(folder: Path) -> Iterator[Server]:
    port = free_port()
    with running("bench.peers.one_row_a_send", [str(folder), HOST, str(port)], port) as server:
        yield server


@contextlib.contextmanager
def _silent_relay() -> Iterator[int]:
    with socket.create_server((HOST, 0), backlog=200) as listener:
        port: int = listener.getsockname()[1]
        yield port


@contextlib.contextmanager
def _sink(program: str) -> Iterator[int]:
    port = free_port()
    sink = subprocess.Popen([program, "-m", "200", f"{HOST}:{port}", "200"], user=unprivileged_user())
    try:
        time.sleep(0.5)
        yield port
    finally:
        sink.terminate()
        sink.wait()

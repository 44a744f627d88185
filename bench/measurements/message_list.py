"""Lists of 20 messages a second, by each interface, beside bare Starlette that gives back stored JSON."""

import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bench.http_load import Load, LoadReport, get_request, run_load
from bench.peers import stored_json
from bench.processes import HOST, Server, running, running_postroom, scratch_folder
from bench.results import Result, at_least_times_peer
from bench.rounds import alternate, compare
from bench.seeding import seed
from bench.smtp_load import SmtpLoad, run_smtp_load
from tests.ports import free_port

MESSAGES = 20
MAIL_BYTES = 2_000
REQUESTS_OF_A_KEY = 800  # an account may make 1,000 a minute


@dataclass(frozen=True, slots=True)
class ListLoad:
    connections: int
    requests: int
    rounds: int

    @property
    def keys_needed(self) -> int:
        return 2 * (1 + (self.rounds + 1) * self.requests // REQUESTS_OF_A_KEY)


@dataclass(frozen=True, slots=True)
class ListKind:
    name: str
    path: str
    least: float  # times the peer


V1 = ListKind(f"list of {MESSAGES} messages", f"/v1/inboxes/{{inbox}}/messages?limit={MESSAGES}", 0.5)
V0 = ListKind(f"list of {MESSAGES} messages of /v0", f"/v0/inboxes/{{inbox}}/messages?limit={MESSAGES}", 0.35)


LOAD = ListLoad(connections=32, requests=4_000, rounds=5)


def measure(load: ListLoad = LOAD) -> list[Result]:
    with scratch_folder() as folder:
        tokens = seed(folder / "data", load.keys_needed, inboxes_each=1)
        with running_postroom(folder / "data") as postroom:
            for number in range(len(tokens)):
                recipient = f"bench-{number}-0@postroom.localhost"
                run_smtp_load(
                    SmtpLoad(postroom.smtp_port, recipient, 2, MESSAGES, MAIL_BYTES, run=str(number))
                )
            inboxes = [_inbox_of(postroom, token) for token in tokens]
            half = len(tokens) // 2
            return [
                _compare(kind, inboxes[part], tokens[part], load, postroom)
                for kind, part in ((V1, slice(half)), (V0, slice(half, None)))
            ]


def _compare(
    kind: ListKind, inboxes: Sequence[str], tokens: Sequence[str], load: ListLoad, postroom: Server
) -> Result:
    paths = [kind.path.format(inbox=inbox) for inbox in inboxes]
    asked = [get_request(path, token) for path, token in zip(paths, tokens, strict=True)]

    def run(server: Server) -> LoadReport:
        return run_load(Load(server.port, asked, load.connections, load.requests))

    port = free_port()
    with scratch_folder() as folder:
        page = folder / "page.json"
        page.write_bytes(_fetch(postroom, paths[0], tokens[0]))
        with running("bench.peers.stored_json", [str(page), HOST, str(port)], port) as peer:
            pairs = alternate(load.rounds, lambda: run(postroom), lambda: run(peer))
    rate = compare(pairs, lambda report: report.per_second)
    aim = at_least_times_peer(kind.least)
    return Result(kind.name, rate.value, "requests/s", aim, rate.peer(stored_json.NAME))


def _inbox_of(server: Server, token: str) -> str:
    inbox_id: str = msgspec.json.decode(_fetch(server, "/v1/inboxes", token))["data"][0]["id"]
    return inbox_id


def _fetch(server: Server, path: str, token: str) -> bytes:
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://{HOST}:{server.port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        body: bytes = answer.read()
        return body

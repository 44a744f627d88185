"""REST requests a second over keep-alive, with their times, beside a bare endpoint with the same answer."""

import contextlib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.http_load import Load, LoadReport, get_request, run_load
from bench.peers import minimal_json
from bench.processes import HOST, Server, running, running_postroom, scratch_folder
from bench.results import Result
from bench.rounds import alternate, compare
from bench.seeding import seed
from tests.ports import free_port

INBOXES = 20
REQUESTS_OF_A_KEY = 800  # an account may make 1,000 a minute


@dataclass(frozen=True, slots=True)
class RestLoad:
    connections: int
    requests: int
    rounds: int

    @property
    def keys_needed(self) -> int:
        return 1 + (self.rounds + 1) * self.requests // REQUESTS_OF_A_KEY


LOAD = RestLoad(connections=32, requests=6_000, rounds=5)


def measure(load: RestLoad = LOAD) -> list[Result]:
    with scratch_folder() as folder:
        tokens = seed(folder / "data", load.keys_needed, INBOXES)
        with running_postroom(folder / "data") as postroom, _peer(folder, postroom, tokens[0]) as peer:
            listing = [get_request("/v1/inboxes", token) for token in tokens]
            return [
                *_compare(f"GET /v1/inboxes ({INBOXES})", listing, load, postroom, peer),
                *_compare("GET /health", [get_request("/health")], load, postroom, peer),
            ]


@contextlib.contextmanager
def _peer(folder: Path, postroom: Server, token: str) -> Iterator[Server]:
    """Answers with the very bytes that Postroom gave to one of the keys."""
    page = folder / "page.json"
    page.write_bytes(_fetch(postroom, token))
    port = free_port()
    with running("bench.peers.minimal_json", [str(page), HOST, str(port)], port) as server:
        assert _fetch(server, token) == page.read_bytes()
        yield server


def _fetch(server: Server, token: str) -> bytes:
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://{HOST}:{server.port}/v1/inboxes", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        body: bytes = answer.read()
        return body


def _compare(name: str, requests: list[str], load: RestLoad, postroom: Server, peer: Server) -> list[Result]:
    def run(server: Server) -> LoadReport:
        return run_load(Load(server.port, requests, load.connections, load.requests))

    pairs = alternate(load.rounds, lambda: run(postroom), lambda: run(peer))
    rate = compare(pairs, lambda report: report.per_second)
    p50 = compare(pairs, lambda report: report.p50_ms)
    p99 = compare(pairs, lambda report: report.p99_ms)
    return [
        Result(name, rate.value, "requests/s", peer=rate.peer(minimal_json.NAME)),
        Result(f"{name} p50", p50.value, "ms", peer=p50.peer(minimal_json.NAME)),
        Result(f"{name} p99", p99.value, "ms", peer=p99.peer(minimal_json.NAME)),
    ]

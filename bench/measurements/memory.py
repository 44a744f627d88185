"""Memory, processor and disk of an idle server and its workers, after requests of every kind.

A minute, since upkeep has a round each minute.
"""

import time

from bench.consumption import family, of_family
from bench.http_load import Load, get_request, run_load
from bench.processes import (
    proportional_bytes,
    resident_bytes,
    running_postroom,
    scratch_folder,
    wait_until_ready,
)
from bench.results import Result, at_most
from bench.seeding import seed

MOST_MEGABYTES = 130
MOST_PERCENT = 0.5  # of a core
MOST_WRITTEN = 0  # kB
SETTLES_SECONDS = 20.0  # the work of a start ends: workers prepare patterns, loops take their duties
PATHS = ("/v1/inboxes", "/v1/me", "/health", "/ready", "/metrics", "/openapi.json", "/docs")


def measure(requests: int = 2_000, idle_seconds: float = 60.0) -> list[Result]:
    with scratch_folder() as folder:
        tokens = seed(folder, account_count=1 + requests // 500, inboxes_each=20)
        with running_postroom(folder) as server:
            wait_until_ready(server.port)
            asked = [get_request(path, token) for token in tokens for path in PATHS]
            run_load(Load(server.port, asked, connections=16, count=requests))
            time.sleep(min(SETTLES_SECONDS, idle_seconds))
            before, began = of_family(server.pid), time.perf_counter()
            time.sleep(idle_seconds)
            idle, seconds = of_family(server.pid) - before, time.perf_counter() - began
            pids = list(family(server.pid))
            megabytes = sum(map(resident_bytes, pids)) / 1_000_000
            once = sum(map(proportional_bytes, pids)) / 1_000_000
    return [
        Result("idle memory of all processes", megabytes, "MB", at_most(MOST_MEGABYTES)),
        Result("idle memory, shared pages once", once, "MB"),
        Result("idle processor", idle.cpu_seconds / seconds * 100, "% of a core", at_most(MOST_PERCENT)),
        Result("idle, written", idle.written_bytes / 1000, "kB", at_most(MOST_WRITTEN)),
    ]

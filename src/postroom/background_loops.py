"""Starts the loops that keep stored data in order, each under supervision until the server stops."""

import contextlib
from functools import partial

from postroom.deliverability.watch_domains import watch_domains
from postroom.deliverability.watch_reputation import watch_reputation
from postroom.mailbox.search.keep_indexed import keep_indexed
from postroom.resources import Resources
from postroom.upkeep.erasure.run_jobs import run_jobs
from postroom.upkeep.integrity import watch_integrity
from postroom.upkeep.keep_evidence import keep_evidence
from postroom.upkeep.upkeep_loop import run_upkeep
from postroom.upkeep.wake_threads import wake_threads
from postroom.upkeep.watch_services import watch_services

LOOPS = {
    "upkeep": run_upkeep,
    "snoozed threads": wake_threads,
    "evidence": keep_evidence,
    "domain health": watch_domains,
    "reputation": watch_reputation,
    "integrity": watch_integrity,
    "search index": keep_indexed,
    "jobs": run_jobs,
    "services": watch_services,
}


def start_background_loops(stack: contextlib.AsyncExitStack, resources: Resources) -> None:
    for name, loop in LOOPS.items():
        resources.loops.run(stack, name, partial(loop, resources))

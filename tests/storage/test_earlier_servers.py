"""A server on a database that an earlier version has filled: everything is there, and goes on."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom.assembly import serving
from tests.conftest import Server, api_client, new_postgres_database, settings, signing_key
from tests.doubles import FakeClock
from tests.letters import letter
from tests.storage.earlier_version import make_database_with_answers

TOKEN = "pr_schema-16-0123456789abcdef"
CHANGING = {"url", "lastUsedAt", "last_used_at"}  # signed anew, or used just now


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty database."""
    with new_postgres_database("template1") as url:
        yield url


def missing(then: Any, now: Any, path: str = "") -> list[str]:
    """Where an answer of today lacks something of the one from then. More fields are allowed."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            fault
            for name in then.keys() - CHANGING
            for fault in missing(then[name], now.get(name, "nothing"), f"{path}.{name}")
        ]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return [fault for place, (a, b) in pairs for fault in missing(a, b, f"{path}[{place}]")]
    return [] if then == now else [f"{path}: {then!r} became {now!r}"]


async def test_all_that_schema_16_held_is_answered_as_it_was(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    then = make_database_with_answers(database_url, tmp_path)
    clock.turn(10_000)
    config = settings(tmp_path, DATABASE_URL=database_url)
    async with serving(config, clock, None, signing_key) as postroom:
        assert postroom.first_token is None
        base_url = postroom.resources.config.base_url
        async with api_client(base_url, TOKEN) as api:
            for path, said in then["said"].items():
                assert missing(said, (await api.get(path)).json(), path) == []
            for message_id, raw in then["raw"].items():
                answer = await api.get(f"/v1/messages/{message_id}/raw")
                assert answer.content == base64.b64decode(raw)
            server = Server(postroom.resources, api, TOKEN, clock, postroom.smtp_port)
            (newest, *_) = then["said"]["/v1/events?limit=100"]["data"][::-1]
            await server.deliver(letter(subject="new"), "one")
            event = await server.next_event(newest["event_id"])
            assert event["message"]["subject"] == "new"
            account = (await api.get("/v1/account")).json()
            usage = (await api.get("/v1/usage?from=2026-11-10&to=2026-11-15&group_by=inbox")).json()["data"]
            assert account["storedBytes"] == sum(group["storedBytes"] for group in usage) > 0

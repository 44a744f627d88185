"""A server with nothing to do rests: no loop asks its database again and again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from postroom.assembly import serving
from postroom.clock import SystemClock
from tests.conftest import api_client, settings
from tests.mail.keys import signing_key

LOOKED_SECONDS = 6.0  # longer than the longest pause of a loop that looks on its own
MOST_TRANSACTIONS = 150  # each loop may look now and then; one that never waits makes thousands


async def test_a_server_with_nothing_to_do_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(settings(tmp_path), SystemClock(), make_key=signing_key) as postroom:
        database = postroom.resources.db
        asked: list[str] = []
        for name in ("read", "write"):
            original = getattr(type(database), name)

            async def counted(self: Any, work: Any, *given: Any, original: Any = original) -> Any:
                asked.append(getattr(work, "__qualname__", str(work)))
                return await original(self, work, *given)

            monkeypatch.setattr(type(database), name, counted)
        await asyncio.sleep(LOOKED_SECONDS)
        assert len(asked) < MOST_TRANSACTIONS, asked
        assert postroom.first_token is not None
        async with api_client(postroom.resources.config.base_url, postroom.first_token) as api:
            assert (await api.get("/v1/inboxes")).status_code == 200
        assert asked, "nothing was counted"

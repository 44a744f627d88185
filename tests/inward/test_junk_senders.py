"""What the junk filter remembers of a sender: since when it writes to an inbox, and whether it sent junk."""

from pathlib import Path
from typing import Any

import pytest

from postroom.clock import DAY, MINUTE
from tests.api.test_junk import NOTE, OFFER, came, messages_of
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.inward.proxied import PEER, hand_over
from tests.inward.test_refusals import HERE, refusing
from tests.raw_mails import raw_mail


async def arrived(
    server: Server, inbox_id: str, number: int, domain: str, text: str = NOTE
) -> dict[str, Any]:
    """An email of the same author; from `news.test` it passes DMARC."""
    fields = {"from": f"Editor <editor@{domain}>", "message_id": f"<{number}@{domain}>"}
    raw = raw_mail(text, subject=f"Issue {number}", **fields)
    before = len((await server.api.get("/v1/events")).json()["data"])
    said = await hand_over(server.smtp_port, raw, HERE, sender="editor@news.test", peer_ip=PEER)
    assert said.startswith("250 "), said
    await came(server, before + 1)
    found = {each["subject"]: each for each in await messages_of(server, inbox_id, include="junk")}
    message: dict[str, Any] = found[f"Issue {number}"]
    return message


def weights(message: dict[str, Any]) -> dict[str, float]:
    """Those of its sender."""
    return {
        each["name"]: each["weight"] for each in message["junk"]["reasons"] if each["name"].endswith("sender")
    }


@pytest.mark.sqlite_alone
async def test_a_sender_is_known_after_a_day_and_neither_junk_nor_who_sends_it_is(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with refusing(tmp_path, database_url, clock) as (server, _):
        inbox_id = await server.new_inbox("hello")

        async def of(number: int, domain: str = "news.test", text: str = NOTE) -> dict[str, float]:
            return weights(await arrived(server, inbox_id, number, domain, text))

        assert await of(1) == {}
        clock.turn(MINUTE)
        assert await of(2) == {"known_sender": -0.5}
        clock.turn(DAY)
        assert await of(3) == {"known_sender": -1.5}
        junk = await arrived(server, inbox_id, 4, "spam.test", OFFER * 2 + " $$$ FREE!!!")
        assert junk["junk"]["isJunk"], junk["junk"]
        clock.turn(DAY)
        assert await of(5, "spam.test") == {}, "the filter called its first email junk"

        first = (await messages_of(server, inbox_id, include="junk"))[-1]["id"]
        forged = await arrived(server, inbox_id, 6, "unproven.test")
        for each in (first, forged["id"]):
            assert (await server.api.post(f"/v1/messages/{each}/junk")).status_code == 200
        assert await of(7) == {"junk_sender": 2.0}
        clock.turn(MINUTE)
        assert await of(8, "unproven.test") == {"known_sender": -0.5}, "anybody may have written it"
        assert (await server.api.post(f"/v1/messages/{first}/not-junk")).status_code == 200
        assert await of(9) == {"known_sender": -1.5}

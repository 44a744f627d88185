"""kill -9 while an email is judged: nothing of it is kept, and the retry is refused."""

import asyncio
import smtplib
from pathlib import Path

import httpx2
import pytest

from tests.api.test_junk import offer
from tests.end_to_end.process import TOKEN, serving_process
from tests.end_to_end.test_mail_kill import look_at
from tests.inward.proxied import hand_over
from tests.inward.test_junk_sources import service
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.sqlite_alone
HERE = "hello@postroom.localhost"
JUNK = {"action": "reject", "threshold": 0.9, "rejectThreshold": 0.95}


async def test_an_email_whose_refusal_is_killed_is_nowhere_and_refused_again(tmp_path: Path) -> None:
    folder, asked = tmp_path / "data", asyncio.Queue[None]()
    answers = [b"", b'HTTP/1.1 200 OK\r\n\r\n{"score": 30}']

    async def rspamd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.put_nowait(None)
        if answer := answers.pop(0):
            writer.write(answer)
        else:
            await reader.read()  # until the server is killed
        writer.close()

    async with service(rspamd) as address:
        more = {"RSPAMD_URL": f"http://{address}", "TRUSTED_PROXIES": "127.0.0.1"}
        with serving_process(folder, workers=1, more=more) as server:
            await asyncio.to_thread(make_inbox, server.base_url)
            talk = asyncio.create_task(hand_over(server.smtp_port, offer(), HERE))
            await asyncio.wait_for(asked.get(), LIMIT_SECONDS)
            server.kill_all()
            with pytest.raises((smtplib.SMTPException, OSError)):
                await talk
        with serving_process(folder, workers=0, more=more) as server:
            said = await hand_over(server.smtp_port, offer(), HERE)
            assert said == "550 5.7.1 Refused as junk"
    kept = await look_at(folder, "")
    assert (kept.subjects, kept.events_of, kept.journaled, kept.blobs) == ({}, {}, 0, set())


def make_inbox(base_url: str) -> None:
    answer = httpx2.post(
        f"{base_url}/v1/inboxes",
        headers={"Authorization": f"Bearer {TOKEN}"},
        json={"mailboxName": "hello", "junk": JUNK},
    )
    assert answer.status_code == 201, answer.text

"""Strangers who only hold connections: the doors stay open for others, and health answers."""

import asyncio
import contextlib
import smtplib
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.processes import descriptors
from tests.end_to_end.process import Running, log_path, serving_process

DESCRIPTORS = 256
FLOOD = 100  # more than either door lets in then
PATIENCE_SECONDS = 120


@contextlib.asynccontextmanager
async def crowd(port: int, first_words: bytes) -> AsyncIterator[None]:
    """Connections from many addresses that say something and then nothing more."""
    writers: list[asyncio.StreamWriter] = []
    for number in range(FLOOD):
        address = (f"127.0.{1 + number // 20}.1", 0)
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
            writer.write(first_words)
            writers.append(writer)
    yield
    for writer in writers:
        writer.close()


def health(running: Running) -> int:
    url = f"http://127.0.0.1:{running.http_port}/health"
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        status: int = answer.status
        return status


def hand_over(running: Running) -> int:
    with smtplib.SMTP("127.0.0.1", running.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
        return smtp.docmd("NOOP")[0]


@pytest.mark.parametrize("first_words", [b"", b"GET /health HTTP/1.1\r\n"], ids=["silent", "half a head"])
@pytest.mark.sqlite_alone
async def test_a_crowd_at_the_web_door_keeps_nobody_out(
    tmp_path: Path, database_url: str, first_words: bytes
) -> None:
    with serving_process(tmp_path / "data", database_url, workers=0, descriptors=DESCRIPTORS) as running:
        async with crowd(running.http_port, first_words):
            for _ in range(5):
                assert await asyncio.to_thread(health, running) == 200
            assert await asyncio.to_thread(hand_over, running) == 250
        log = log_path(tmp_path / "data").read_text()
        assert "HTTP connection limit reached" in log
        assert "Traceback" not in log


@pytest.mark.parametrize("first_words", [b"", b"EHLO there\r\n"], ids=["silent", "greeted"])
@pytest.mark.sqlite_alone
async def test_a_crowd_at_the_mail_door_keeps_nobody_out(
    tmp_path: Path, database_url: str, first_words: bytes
) -> None:
    with serving_process(tmp_path / "data", database_url, descriptors=DESCRIPTORS) as running:
        async with crowd(running.smtp_port, first_words):
            for _ in range(5):
                assert await asyncio.to_thread(hand_over, running) == 250
            assert await asyncio.to_thread(health, running) == 200
        log = log_path(tmp_path / "data").read_text()
        assert "SMTP connection limit reached" in log
        assert "Traceback" not in log


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096, 65_536])
def test_the_caps_of_both_doors_fit_under_the_limit_with_a_reserve(limit: int) -> None:
    caps = descriptors.caps(limit)
    used = caps.smtp * descriptors.PER_SMTP + caps.http
    assert used <= max(limit - descriptors.RESERVE, limit // 2)

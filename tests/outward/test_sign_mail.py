"""Signatures made in threads: shared by the recipients of a message, and undisturbed by who gives up."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from postroom.accounts.dkim_keys import DkimKey
from postroom.outward import sign_mail
from postroom.outward.sign_mail import GROUP_SIZE, KEPT_FOR, Signers, Unsigned
from postroom_mail.authentication import dkim
from tests.doubles import START
from tests.mail.keys import signing_key
from tests.waiting import until


def unsigned(message_id: str, raw: bytes = b"From: a@b.example\r\n\r\nHi\r\n", now: int = START) -> Unsigned:
    return Unsigned(message_id, raw, "b.example", (DkimKey("postroom", signing_key()),), now)


@pytest.fixture
async def signers() -> AsyncIterator[Signers]:
    made = Signers(threads=2)
    yield made
    made.close()


async def test_a_signature_is_the_one_that_the_key_makes(signers: Signers) -> None:
    mail = unsigned("msg_1")
    key = dkim.load_key(signing_key())
    expected = dkim.sign(mail.raw, domain="b.example", keys=[("postroom", key)], signed_at=START)
    assert await signers.sign(mail) == expected


async def test_recipients_under_way_together_share_one_signature(signers: Signers) -> None:
    moments = itertools.count(START, 1000)  # each would be another signature
    asked = [signers.sign(unsigned("msg_1", now=next(moments))) for _ in range(20)]
    other = signers.sign(unsigned("msg_2", now=next(moments)))
    *shared, of_other = await asyncio.gather(*asked, other)
    assert len(set(shared)) == 1
    assert of_other not in shared


async def test_recipients_one_after_the_other_share_one_signature_for_some_minutes(signers: Signers) -> None:
    first = await signers.sign(unsigned("msg_1"))
    assert await signers.sign(unsigned("msg_1", now=START + KEPT_FOR - 1)) == first
    later = await signers.sign(unsigned("msg_1", now=START + KEPT_FOR))
    assert later != first
    other = b"From: a@b.example\r\n\r\nHello\r\n"
    assert await signers.sign(unsigned("msg_1", other, START + KEPT_FOR)) != later


async def test_no_signature_of_another_key_is_given_and_only_some_are_kept(
    signers: Signers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_mail, "KEPT_SIGNATURES", 3)
    first = await signers.sign(unsigned("msg_1"))
    rotated = structs.replace(unsigned("msg_1"), keys=(DkimKey("second", signing_key()),))
    assert b"s=second;" in await signers.sign(rotated)
    assert b"s=postroom;" in first
    await asyncio.gather(*(signers.sign(unsigned(f"msg_{number}")) for number in range(5)))
    assert len(signers._kept) == 3


async def test_many_more_than_a_group_are_all_signed(signers: Signers) -> None:
    count = 3 * GROUP_SIZE + 1
    moments = range(START, START + count * 1000, 1000)
    asked = [signers.sign(unsigned(f"msg_{number}", now=moment)) for number, moment in enumerate(moments)]
    assert len(set(await asyncio.gather(*asked))) == count


async def test_a_mail_that_cannot_be_signed_fails_for_all_who_ask_and_for_nobody_else(
    signers: Signers,
) -> None:
    bad = [signers.sign(unsigned("msg_1", b"From: a@b.example\n\nHi\n")) for _ in range(3)]
    *failed, fine = await asyncio.gather(*bad, signers.sign(unsigned("msg_2")), return_exceptions=True)
    assert [str(error) for error in failed] == ["raw: bare CR or LF"] * 3
    assert isinstance(fine, bytes)


async def test_who_gives_up_leaves_the_signature_to_the_others(signers: Signers) -> None:
    first, second = (asyncio.ensure_future(signers.sign(unsigned("msg_1"))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).startswith(b"DKIM-Signature:")
    assert (await signers.sign(unsigned("msg_1"))).startswith(b"DKIM-Signature:")


async def test_closing_waits_for_what_has_begun_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, may_end = list[str](), list[str](), threading.Event()

    def sign_slowly(mail: Unsigned) -> bytes:
        begun.append(mail.message_id)
        assert may_end.wait(120)
        ended.append(mail.message_id)
        return b""

    monkeypatch.setattr(sign_mail, "_signature_or_error", sign_slowly)
    signers = Signers(threads=1)
    asked = [asyncio.ensure_future(signers.sign(unsigned(f"msg_{number}"))) for number in range(5)]
    await until(lambda: begun)
    [thread] = signers._threads

    def join() -> None:
        may_end.set()
        threading.Thread.join(thread)

    monkeypatch.setattr(thread, "join", join)
    signers.close()
    assert begun == ended == ["msg_0"]
    for signature in asked:
        signature.cancel()

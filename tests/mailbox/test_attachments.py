"""Attachments: listed by message in their order, with links that hold for a while and for one file."""

from urllib.parse import parse_qs, urlsplit

import pytest

from postroom.errors import InvalidSignature, NoText, NotFound
from postroom.mailbox import attachments
from postroom.mailbox.attachments import LINK_LIFETIME, Attachment, PieceOfText
from postroom.storage.database import Database
from postroom_mail.files.extraction import MAX_TEXT_CHARS
from tests.doubles import START
from tests.stored import make_inbox, put_mail

SECRET = b"s" * 32
FILES = [Attachment("b.txt", 0, "text/plain", 3), Attachment("a.txt", 1, "text/plain", 4)]


@pytest.mark.sqlite_alone
async def test_files_are_listed_in_their_order_and_their_text_is_set(db: Database) -> None:
    message = await db.write(lambda tx: put_mail(tx, make_inbox(tx)))
    await db.write(attachments.add_all, [(message.id, file) for file in reversed(FILES)])
    assert await db.read(attachments.list_of_messages, [message.id, "msg_other"]) == {message.id: FILES}
    assert await db.read(attachments.list_of_messages, []) == {}
    with pytest.raises(NoText, match="not read yet"):
        attachments.require_text(FILES[0])
    read = Attachment("b.txt", 0, "text/plain", 3, "text", "words")
    await db.write(attachments.set_text, message.id, read)
    assert await db.read(attachments.get, message.id, "b.txt") == read
    assert await db.read(attachments.get, message.id, "a.txt") == FILES[1]
    assert attachments.require_text(read) == "words"
    with pytest.raises(NotFound):
        await db.read(attachments.get, message.id, "c.txt")


async def test_what_is_behind_a_long_text_is_kept_apart(db: Database) -> None:
    message = await db.write(lambda tx: put_mail(tx, make_inbox(tx)))
    text = "".join(f"{number:09} " for number in range(12_000))
    read = FILES[0].with_text("text", text)
    await db.write(
        attachments.add_all, [(message.id, FILES[0]), (message.id, FILES[1].with_text("ocr", "a"))]
    )
    await db.write(attachments.set_text, message.id, read)
    kept = await db.read(attachments.get, message.id, "b.txt")
    assert (kept.parsed_text, kept.is_text_cut, kept.rest) == (text[:MAX_TEXT_CHARS], True, None)
    await db.write(attachments.set_text, message.id, kept)  # as it was read before: nothing is lost
    for offset in (0, 49_999, 50_000, 119_999, 120_000):
        piece = await db.read(attachments.piece_of_text, message.id, kept, offset)
        assert piece == PieceOfText(text[offset : offset + MAX_TEXT_CHARS], offset, len(text))
    short = await db.read(attachments.get, message.id, "a.txt")
    assert await db.read(attachments.piece_of_text, message.id, short, 0) == PieceOfText("a", 0, 1)
    assert await db.read(attachments.piece_of_text, message.id, short, 7) == PieceOfText("", 7, 1)


def check(message_id: str, filename: str, now: int) -> None:
    query = parse_qs(urlsplit(attachments.signed_url("http://x", SECRET, "msg_1", "ä b.txt", START)).query)
    attachments.require_signed_link(
        SECRET, message_id, filename, query["expires"][0], query["signature"][0], now
    )


def test_a_link_holds_for_its_time() -> None:
    check("msg_1", "ä b.txt", START + LINK_LIFETIME - 1)
    with pytest.raises(InvalidSignature, match="expired"):
        check("msg_1", "ä b.txt", START + LINK_LIFETIME)


def test_a_link_is_of_one_file_of_one_message() -> None:
    for message_id, filename in (("msg_2", "ä b.txt"), ("msg_1", "other.txt")):
        with pytest.raises(InvalidSignature, match="not valid"):
            check(message_id, filename, START)


def test_a_path_has_no_character_of_its_own() -> None:
    assert attachments.path("msg_1", "a/b ?.txt") == "/v1/attachments/msg_1/a%2Fb%20%3F.txt"

"""A raw mail whose text stands in its document is kept without it, and comes back byte for byte."""

from hypothesis import given
from hypothesis import strategies as st

from postroom.mailbox import raw_mails
from postroom.mailbox.raw_mails import IN_ROW_BYTES, cut, restore
from tests.conftest import Server
from tests.raw_mails import html_mail, raw_mail

LINES = "".join(f"Line {number} says nothing, and goes on for a while.\n" for number in range(40))
PAGE = "".join(f"<p>Paragraph {number} of a page.</p>\n" for number in range(60))
BOTH = (
    f"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{LINES}\r\n--b\r\nContent-Type: text/html\r\n\r\n"
    f"{PAGE}\r\n--b--\r\n"
).replace("\r\n", "\n")
words = st.text(alphabet="ab\n é", max_size=8).map(lambda word: word * 60)


@given(st.lists(words, max_size=5), words, words)
def test_what_is_cut_out_can_be_put_back_in_whatever_it_is(pieces: list[str], text: str, html: str) -> None:
    content = "".join([*pieces, text, html, *pieces]).encode().replace(b"\n", b"\r\n")
    kept = cut(content, text, html)
    assert restore(kept, text, html) == content
    assert len(kept.content) <= len(content)


def test_a_text_that_begins_alike_and_a_large_mail_stay_whole() -> None:
    assert cut(b"x" * 1_000, "x" * 999 + "y", "").content == b"x" * 1_000
    large = LINES.encode() * (IN_ROW_BYTES // len(LINES) + 1)
    assert cut(large, LINES, "") == raw_mails.Cut(large)


async def test_mails_of_every_make_are_given_back_as_they_came(server: Server) -> None:
    await server.new_inbox("hello")
    head = {"mime_version": "1.0", "content_type": "multipart/alternative; boundary=b"}
    mails = [
        raw_mail(LINES.replace("\n", "\r\n")),
        raw_mail("é" + LINES.replace("\n", "\r\n"), content_type="text/plain; charset=utf-8"),
        raw_mail(BOTH.replace("\n", "\r\n"), **head),
        html_mail(PAGE.replace("\n", "\r\n")),
        raw_mail(LINES.replace("\n", "=\r\n"), content_transfer_encoding="quoted-printable"),
    ]
    for raw in mails:
        await server.deliver(raw, "hello")
    rows = await server.resources.db.read(
        lambda tx: tx.all(
            "select id, text_at, html_at from messages join raw_mails on message_id = id"
            " order by created_at, id"
        )
    )
    cuts = [(row["text_at"] is not None, row["html_at"] is not None) for row in rows]
    assert cuts == [(True, False), (True, False), (True, True), (False, True), (False, False)]
    for row, raw in zip(rows, mails, strict=True):
        kept = await server.api.get(f"/v1/messages/{row['id']}/raw")
        assert kept.content.endswith(raw)
        assert kept.content.startswith(b"Received: from ")
        assert await raw_mails.read(server.resources, row["id"], with_trace=False) == raw

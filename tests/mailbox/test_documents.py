"""The columns of a document: the same bytes, whichever way the reply text is found in the text."""

from msgspec import structs

from postroom.mailbox import documents
from tests.filled_inbox import document
from tests.samples import samples

TEXTS = [
    ("", ""),
    ("Hello", ""),
    ("Hello", "Hello"),
    ("Hello\n\n> said", "Hello"),
    ('Sag "Ja"\tÄ 東京 \\ \u2028', 'Sag "Ja"\tÄ 東'),
    ("> said\n\nHello", "Hello"),
    ("one two", "no part of it"),
    ('","bodyHtml":"x', '","bodyHtml":"'),
    ('","replyText":"x', '","replyText":"'),
]


@samples(("text", "reply"), TEXTS)
def test_a_reply_text_is_kept_as_a_place_in_the_text_and_read_as_it_was(text: str, reply: str) -> None:
    whole = structs.replace(document("inb_1", "a@b.example"), body_text=text, reply_text=reply)

    stored, reply_at, reply_bytes = documents.to_columns(whole)

    assert (stored, reply_at, reply_bytes) == documents.without_reply(documents.encode(whole))
    row = {"document": stored, "reply_at": reply_at, "reply_bytes": reply_bytes}
    assert documents.decode(documents.from_row(row)) == whole


@samples("times", [1, 200, 20_000])
def test_a_document_is_packed_and_says_how_long_it_is(times: int) -> None:
    whole = structs.replace(document("inb_1", "a@b.example"), body_text="Hello " * times)

    stored, reply_at, reply_bytes, document_bytes, category = documents.to_written(whole)

    assert len(stored) < len(documents.encode(whole)) / 2
    assert document_bytes == len(documents.to_columns(whole)[0])
    assert category == whole.category
    row = {"document": stored, "reply_at": reply_at, "reply_bytes": reply_bytes}
    assert documents.columns_of(row) == documents.to_columns(whole)

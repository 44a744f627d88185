"""Parts of a mail by their numbers, ENVELOPE and BODYSTRUCTURE, from chunks of any size."""

import email
import email.policy

from hypothesis import given
from hypothesis import strategies as st

from postroom.imap.listing import is_meant
from postroom_mail.mime import imap_sections, imap_values
from postroom_mail.mime.imap_sections import BodyPart

MIXED = (
    b"From: =?utf-8?q?J=C3=B6rg?= <joerg@x.example>\r\nTo: a@y.example, B <b@y.example>\r\n"
    b"Subject: Two parts\r\nMessage-ID: <1@x.example>\r\nDate: Mon, 16 Nov 2026 10:00:00 +0000\r\n"
    b'Content-Type: multipart/mixed; boundary="outer"\r\n\r\npreamble\r\n'
    b"--outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n"
    b"--inner\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nHello\r\nthere\r\n"
    b"--inner\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>\r\n--inner--\r\n"
    b"--outer\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment; filename=m.eml\r\n\r\n"
    b"Subject: Inside\r\n\r\nInner body\r\n"
    b"--outer\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    b"AAAA\r\n--outer--\r\nepilogue\r\n"
)


def part(raw: bytes, path: tuple[int, ...], kind: str = "") -> bytes | None:
    found = imap_sections.span(imap_sections.scan([raw]), path, kind)
    return None if found is None else raw[found[0] : found[1]]


def test_sections_are_found_by_their_numbers() -> None:
    assert part(MIXED, ()) == MIXED
    assert part(MIXED, (1, 1)) == b"Hello\r\nthere"
    assert part(MIXED, (1, 2)) == b"<p>Hello</p>"
    assert part(MIXED, (1, 2), "MIME") == b"Content-Type: text/html\r\n\r\n"
    assert part(MIXED, (2,)) == b"Subject: Inside\r\n\r\nInner body"
    assert part(MIXED, (2,), "HEADER") == b"Subject: Inside\r\n\r\n"
    assert part(MIXED, (2,), "TEXT") == b"Inner body"
    assert part(MIXED, (2, 1)) == b"Inner body"
    assert part(MIXED, (3,)) == b"AAAA"
    assert part(MIXED, (4,)) is None
    assert part(MIXED, (3, 1)) is None
    assert part(MIXED, (1,), "HEADER") is None
    head = part(MIXED, (), "HEADER")
    assert head is not None
    assert head.endswith(b'boundary="outer"\r\n\r\n')


def test_a_mail_without_parts_has_one() -> None:
    raw = b"Subject: x\r\n\r\nbody\r\n"
    assert part(raw, (1,)) == b"body\r\n"
    assert part(raw, (), "TEXT") == b"body\r\n"
    assert part(raw, (2,)) is None


def test_the_structure_of_a_mail_is_told_part_by_part() -> None:
    told = imap_values.body_structure(imap_sections.scan([MIXED]), is_extended=True)
    assert told.startswith(b'((("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "7BIT" 12 1 NIL NIL NIL NIL)')
    assert b'("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 29 (NIL "Inside" ' in told
    assert b'("attachment" ("FILENAME" "m.eml"))' in told
    assert b'("APPLICATION" "PDF" ("NAME" "a.pdf") NIL NIL "BASE64" 4 NIL NIL NIL NIL)' in told
    assert told.endswith(b' "MIXED" ("BOUNDARY" "outer") NIL NIL NIL)')
    assert b"BOUNDARY" not in imap_values.body_structure(imap_sections.scan([MIXED]), is_extended=False)


def test_the_envelope_names_people_as_encoded_words() -> None:
    told = imap_values.envelope(imap_sections.scan([MIXED]).headers)
    sender = b'(("=?utf-8?b?SsO2cmc=?=" NIL "joerg" "x.example"))'
    assert told == (
        b'("Mon, 16 Nov 2026 10:00:00 +0000" "Two parts" ' + b" ".join([sender] * 3) + b" "
        b'((NIL NIL "a" "y.example")("B" NIL "b" "y.example")) NIL NIL NIL "<1@x.example>")'
    )


def test_strings_that_cannot_be_quoted_are_literals() -> None:
    assert imap_values.string(b'a "b" \\') == b'"a \\"b\\" \\\\"'
    assert imap_values.string("ö".encode()) == b"{2}\r\n\xc3\xb6"
    assert imap_values.numbers([1, 2, 3, 7, 9, 10]) == b"1:3,7,9:10"


def leaves(root: BodyPart) -> list[tuple[int, int]]:
    if root.children:
        return [each for child in root.children for each in leaves(child)]
    return [(root.body_start, root.end)]


@given(st.integers(1, 70))
def test_chunks_of_any_size_give_the_same_parts(size: int) -> None:
    chunks = [MIXED[start : start + size] for start in range(0, len(MIXED), size)]
    assert imap_sections.scan(chunks) == imap_sections.scan([MIXED])


@given(st.binary(max_size=400) | st.lists(st.sampled_from(MIXED.splitlines(keepends=True))).map(b"".join))
def test_any_bytes_have_parts_within_their_bounds(raw: bytes) -> None:
    root = imap_sections.scan([raw])
    assert root.end == len(raw)
    for start, end in leaves(root):
        assert 0 <= start <= end <= len(raw)
    assert imap_values.body_structure(root, is_extended=True).startswith(b"(")
    assert imap_values.envelope(root.headers).startswith(b"(")


def test_the_same_leaves_as_the_standard_library_finds() -> None:
    parsed = email.message_from_bytes(MIXED, policy=email.policy.compat32)
    types = [each.get_content_type() for each in parsed.walk() if not each.is_multipart()]
    assert types == ["text/plain", "text/html", "text/plain", "application/pdf"]
    root = imap_sections.scan([MIXED])
    found = [child.content_type for child in root.children[0].children]
    assert found == ["text/plain", "text/html"]
    assert root.children[1].message is not None
    assert root.children[2].content_type == "application/pdf"


def test_names_are_matched_by_patterns() -> None:
    for pattern, name in (
        ("*", "inbox"),
        ("%", "sent"),
        ("in*", "inbox"),
        ("*box", "inbox"),
        ("i%b*x", "inbox"),
    ):
        assert is_meant(name, pattern), pattern
    for pattern, name in (("inbo", "inbox"), ("*a*", "inbox"), ("", "inbox"), ("inbox%y", "inbox")):
        assert not is_meant(name, pattern), pattern

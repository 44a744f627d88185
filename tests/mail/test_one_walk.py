"""The API and mail clients see the same parts of any email; the standard library is the second reader.

POSTROOM_TEST_WALKED_MAILS sets how many random emails are tried.
"""

import email
import email.policy
import os
import random
from email.message import Message
from typing import Any

from postroom.mailbox import raw_mails
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.mime import headers, parts
from postroom_mail.mime.parts import BodyPart, Part

WALKED_MAILS = int(os.environ.get("POSTROOM_TEST_WALKED_MAILS", "400"))
TRACE = b"Received: from x by y; Mon, 16 Nov 2026 10:05:00 +0000\r\n"
BOUNDARIES = ("a", "ab", "a--", "b", "b--", "--", "a b")
LINES = (b"Hello", b"", b" ", b"--", b"--a", b"--a--", b"--ab", b"--b ", b"----", b"x: y", b"\r", b"\xff")
NO_FIELDS = (b"no field", b" folded", b": x", b"Two words: x", b"\xff", b"--a", b"")
Shape = tuple[object, ...]


def of_api(part: Part) -> Shape:
    return part.content_type, part.body, tuple(map(of_api, part.children))


def of_clients(raw: bytes, part: BodyPart) -> Shape:
    is_leaf = not part.content_type.startswith("multipart/")
    body = raw[part.body_start : part.end] if is_leaf else b""
    return part.content_type, body, tuple(of_clients(raw, child) for child in part.children)


def attached(part: BodyPart) -> list[BodyPart]:
    inside = [part] if part.message is not None else []
    for each in (*part.children, *([part.message] if part.message else [])):
        inside += attached(each)
    return inside


def random_part(dice: random.Random, depth: int) -> bytes:
    """A part or an email, often damaged: with boundaries that are prefixes of each other or used twice."""
    lines = [b"Subject: x"] if dice.random() < 0.3 else []
    kind = dice.choice(["text", "text", "file", "multipart", "multipart", "message", "none"])
    boundary = dice.choice(BOUNDARIES)
    if kind == "multipart":
        named = f'; boundary="{boundary}"' if dice.random() < 0.9 else ""
        lines.append(f"Content-Type: multipart/{dice.choice(['mixed', 'digest'])}{named}".encode())
    elif kind != "none":
        types = {"text": "text/plain", "file": "image/png", "message": "message/rfc822"}
        lines.append(f"Content-Type: {types[kind]}".encode())
    if dice.random() < 0.2:
        lines.insert(dice.randrange(len(lines) + 1), dice.choice(NO_FIELDS))
    if dice.random() < 0.9:
        lines.append(b"")
    if kind == "message" and depth:
        return b"\r\n".join(lines) + b"\r\n" + random_part(dice, depth - 1)
    if kind == "multipart" and depth:
        for _ in range(dice.randrange(4)):
            lines += [b"--" + boundary.encode(), random_part(dice, depth - 1)]
        lines += [b"--" + boundary.encode() + b"--"] * (dice.random() < 0.8)
    lines += [dice.choice(LINES) for _ in range(dice.randrange(4))]
    return b"\r\n".join(lines)


def chunks_of(dice: random.Random, raw: bytes) -> list[bytes]:
    size = dice.randrange(1, 80)
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def test_mail_clients_and_the_api_see_the_same_parts_of_any_email() -> None:
    dice = random.Random(2046)
    for number in range(WALKED_MAILS):
        raw = random_part(dice, 4)
        if dice.random() < 0.2:
            raw = raw.replace(b"\r\n", dice.choice([b"\n", b"\r"]))
        lined = headers.with_line_feeds(raw)
        block = headers.split(lined, 0)
        api = parts.read(lined, block).root
        root = parts.scan(chunks_of(dice, raw))
        assert of_clients(lined, root) == of_api(api), (number, raw)
        assert root.body_start == block.body_start == raw_mails.head_end(raw), (number, raw)
        assert len(split_mail(raw).body.replace(b"\r", b"")) == len(
            lined[block.body_start :].replace(b"\r", b"")
        )
        if b"\n" in raw:  # our trace ends its line so
            behind = parts.scan(chunks_of(dice, TRACE + raw), len(TRACE))
            assert of_clients(TRACE + raw, behind) == of_api(api), (number, raw)
            for part in attached(root):
                content = lined[part.body_start : part.end]
                assert part.message is not None
                if b"\n" in content and part.message.children:
                    alone = parts.read(content, headers.split(content, 0)).root
                    assert of_clients(lined, part.message) == of_api(alone), (number, raw)


def of_library(part: Message) -> list[tuple[str, bytes]]:
    """Its leaves; an attached email is one."""
    payload: Any = part.get_payload()
    if part.get_content_maintype() == "multipart" and isinstance(payload, list):
        return [leaf for child in payload for leaf in of_library(child)]
    text = payload if isinstance(payload, str) else payload[0].as_string()
    return [(part.get_content_type(), text.encode().replace(b"\r\n", b"\n").rstrip())]


def leaves(part: Part) -> list[tuple[str, bytes]]:
    if part.children:
        return [leaf for child in part.children for leaf in leaves(child)]
    return [(part.content_type, part.body.replace(b"\r\n", b"\n").rstrip())]


def whole_part(dice: random.Random, depth: int, used: list[int]) -> bytes:
    """As a good program writes it: every boundary is used once, and every one is closed."""
    used.append(1)
    boundary = f"b{len(used)}" + dice.choice(["", "--", "="])
    if depth and dice.random() < 0.6:
        inside = [whole_part(dice, depth - 1, used) for _ in range(dice.randrange(1, 4))]
        parts = "".join(f"--{boundary}\r\n" + each.decode() + "\r\n" for each in inside)
        return (
            f'Content-Type: multipart/mixed; boundary="{boundary}"\r\n\r\n{parts}--{boundary}--\r\n'.encode()
        )
    if depth and dice.random() < 0.2:
        return b"Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nInside\r\n--b1x\r\n"
    return b"Content-Type: text/plain\r\n\r\nHello\r\n--b1x\r\n -- \r\n"


def test_the_standard_library_finds_the_same_parts_of_sound_emails() -> None:
    dice = random.Random(5322)
    for number in range(WALKED_MAILS):
        raw = b"Subject: x\r\nMIME-Version: 1.0\r\n" + whole_part(dice, 4, [])
        found = leaves(parts.read(raw, headers.split(raw, 0)).root)
        parsed = email.message_from_bytes(raw, policy=email.policy.compat32)
        assert found == of_library(parsed), (number, raw)


def test_delimiters_of_an_email_win_over_those_of_an_email_attached_to_it() -> None:
    raw = (
        b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: message/rfc822\r\n\r\n"
        b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n\r\nText\r\n--a--\r\n"
    )
    root = parts.scan([raw])
    assert [child.content_type for child in root.children] == ["message/rfc822", "text/plain"]


def test_a_stream_of_many_parts_is_never_held_whole() -> None:
    part = b"--a\r\nContent-Type: text/plain\r\n\r\n" + (b"x" * 70 + b"\r\n") * 100
    raw = b"Content-Type: multipart/mixed; boundary=a\r\n\r\n" + part * 900 + b"--a--\r\n"
    window = parts._Window(b"", iter([raw[at : at + 65_536] for at in range(0, len(raw), 65_536)]), True)
    walker, longest = parts._Walker(window), 0
    split = window.split

    def watched(start: int, max_fields: int) -> headers.Block:
        nonlocal longest
        longest = max(longest, len(window._buffer))
        return split(start, max_fields)

    window.split = watched  # type: ignore[method-assign]
    root = walker.read_part(0, window.split(0, headers.MAX_FIELDS), "text/plain", 0)
    assert (len(root.children), root.end, root.children[-1].lines) == (900, len(raw), 99)
    assert longest < 2 * headers.MAX_HEADER_BYTES < len(raw)

"""Text of slides before pptx (MS-PPT): the slides of the last save, in order, without hidden ones."""

import struct
from collections.abc import Iterator

from msgspec import Struct

from postroom_mail.files.old_office.compound import CompoundFile
from postroom_mail.files.outcome import Encrypted, Unsupported

MAX_EDITS = 1_000
ENCRYPTED_TOKEN = 0xF3D1C4DF
DOCUMENT, SLIDE, SLIDE_LIST, SLIDE_PLACE, SLIDE_SHOW = 0x03E8, 0x03EE, 0x0FF0, 0x03F3, 0x03F9
PERSIST_DIRECTORY, USER_EDIT = 0x1772, 0x0FF5
TEXT_WIDE, TEXT_NARROW, TEXT_HEADER, OUTLINE_TEXT = 0x0FA0, 0x0FA8, 0x0F9F, 0x0F9E
CONTAINER = 0x0F
HIDDEN = 0x0004

_RECORD = struct.Struct("<HHI")


def is_slides(names: dict[str, int]) -> bool:
    return "powerpoint document" in names


class SlideRecord(Struct, frozen=True):
    kind: int
    instance: int
    body: bytes


def slides97_text(file: CompoundFile) -> Iterator[str]:
    stream, user = file.stream("PowerPoint Document"), file.stream("Current User")
    _, token, edit = struct.unpack_from("<8xIII", user)
    if token == ENCRYPTED_TOKEN:
        raise Encrypted
    places, document = _persisted(stream, edit)
    if document not in places:
        raise Unsupported
    return _slides_text(stream, places, places[document])


def _slides_text(stream: bytes, places: dict[int, int], document: int) -> Iterator[str]:
    # Slides may name the same bytes again and again.
    left = 2 * len(stream)
    slides = list(_listed_slides(stream, document))
    unread = 0
    for number, outline in slides:
        place = places.get(number, len(stream))
        slide = _record_at(stream, place)
        left -= len(slide.body)
        is_readable = slide.kind == SLIDE and left >= 0
        unread += not (is_readable and _is_whole(stream, place))
        if is_readable:
            yield from _slide_text(slide, outline)
            yield "\n"
    if unread:
        yield f"[{unread} of {len(slides)} slides could not be read whole]\n"


def _persisted(stream: bytes, edit: int) -> tuple[dict[int, int], int]:
    """Return the position of each object, newest save first, and which one is the document."""
    places: dict[int, int] = {}
    document = -1
    seen: set[int] = set()
    while edit not in seen and len(seen) < MAX_EDITS:
        seen.add(edit)
        record = _record_at(stream, edit)
        if record.kind != USER_EDIT or len(record.body) < 20:
            break
        edit, directory, number = struct.unpack_from("<8xIII", record.body)
        document = number if document < 0 else document
        for name, place in _directory(_record_at(stream, directory)):
            places.setdefault(name, place)
    return places, document


def _directory(record: SlideRecord) -> Iterator[tuple[int, int]]:
    numbers = struct.unpack(f"<{len(record.body) // 4}I", record.body[: len(record.body) // 4 * 4])
    at = 0
    while record.kind == PERSIST_DIRECTORY and at < len(numbers):
        first, count = numbers[at] & 0xFFFFF, numbers[at] >> 20
        yield from enumerate(numbers[at + 1 : at + 1 + count], first)
        at += 1 + count


def _listed_slides(stream: bytes, document: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the slides in order, each with its texts from the outline."""
    for listing in _records(_record_at(stream, document).body):
        if listing.kind != SLIDE_LIST or listing.instance:
            continue
        number, texts = -1, list[str]()
        for record in _records(listing.body):
            if record.kind == SLIDE_PLACE and len(record.body) >= 4:
                if number >= 0:
                    yield number, texts
                (number,), texts = struct.unpack_from("<I", record.body), []
            elif record.kind == TEXT_HEADER:
                texts.append("")
            elif texts:
                texts[-1] += _text(record)
        if number >= 0:
            yield number, texts


def _slide_text(slide: SlideRecord, outline: list[str]) -> Iterator[str]:
    records = list(_tree(slide.body))
    if any(record.kind == SLIDE_SHOW and _is_hidden(record) for record in records):
        return
    for record in records:
        if record.kind == OUTLINE_TEXT and len(record.body) >= 4:
            (place,) = struct.unpack_from("<I", record.body)
            yield f"{outline[place]}\n" if place < len(outline) else ""
        elif text := _text(record):
            yield f"{text}\n"


def _is_hidden(record: SlideRecord) -> bool:
    return len(record.body) >= 12 and bool(struct.unpack_from("<H", record.body, 10)[0] & HIDDEN)


def _text(record: SlideRecord) -> str:
    if record.kind == TEXT_WIDE:
        return record.body.decode("utf-16-le", "replace")
    return record.body.decode("latin-1") if record.kind == TEXT_NARROW else ""


def _record_at(stream: bytes, place: int) -> SlideRecord:
    if place + _RECORD.size > len(stream):
        return SlideRecord(0, 0, b"")
    head, kind, size = _RECORD.unpack_from(stream, place)
    return SlideRecord(kind, head >> 4, stream[place + 8 : place + 8 + size])


def _is_whole(stream: bytes, place: int) -> bool:
    _, _, size = _RECORD.unpack_from(stream, place)
    return place + _RECORD.size + int(size) <= len(stream)


def _records(body: bytes) -> Iterator[SlideRecord]:
    place = 0
    while place + _RECORD.size <= len(body):
        record = _record_at(body, place)
        yield record
        place += _RECORD.size + len(record.body)


def _tree(body: bytes) -> Iterator[SlideRecord]:
    """Yield every record inside, in stream order, including those inside containers."""
    place = 0
    while place + _RECORD.size <= len(body):
        head, kind, size = _RECORD.unpack_from(body, place)
        place += _RECORD.size
        if head & 0x0F != CONTAINER:
            yield SlideRecord(kind, head >> 4, body[place : place + size])
            place += size

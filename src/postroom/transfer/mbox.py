"""Mail in files: mbox (quoting `From ` as mboxrd does) and Maildir, never held in memory as a whole."""

import mmap
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from postroom import limits
from postroom_mail.mime import headers
from postroom_mail.mime.parse import message_id_of

HEAD_BYTES = 64 * 1024
LINE_BYTES = 1024
FROM = b"From "
EMPTY_LINES = (b"\n\n", b"\n\r\n")
EARLIEST = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp()) * 1000
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_TO_QUOTE = re.compile(rb"^(>*From )", re.MULTILINE)
_DATE = re.compile(rb"^date:[ \t]*+([^\r\n]{1,100})", re.MULTILINE | re.IGNORECASE)
_RETURN_PATH = re.compile(
    rb"^return-path:[ \t]*<([^>\r\n]{0,%d})>" % limits.ADDRESS_CHARACTERS, re.MULTILINE | re.IGNORECASE
)
_FROM_LINE = re.compile(rb"From (\S{1,%d})[ \t]++([^\r\n]{1,60})" % limits.ADDRESS_CHARACTERS)


class FiledMail(Struct, frozen=True):
    """The position of an email in a file, its date, its envelope sender and its Message-ID.

    The id is "" if it has none, or if its header is longer than what was read.
    """

    path: Path
    start: int
    length: int
    at: int
    mail_from: str
    message_id: str = ""
    labels: tuple[str, ...] = ()


def list_mbox(path: Path, now: int) -> list[FiledMail]:
    """List the emails by date, so that each comes before its answers."""
    return sorted(walk_mbox(path, now), key=lambda mail: mail.at)


def list_maildir(folder: Path, now: int) -> list[FiledMail]:
    """Includes subfolders, whose names begin with a dot."""
    found = []
    for part in (folder, *sorted(each for each in folder.glob(".*") if each.is_dir())):
        for path in sorted(path for name in ("cur", "new") for path in (part / name).glob("*")):
            if path.is_file():
                found.append(_described(path, 0, path.stat().st_size, b"", _head(path), now))
    return sorted(found, key=lambda mail: mail.at)


def read(mail: FiledMail) -> bytes:
    """Return the email as it was sent: lines end with CR LF."""
    with mail.path.open("rb") as file:
        file.seek(mail.start)
        raw = file.read(mail.length)
    if mail.start and b">From " in raw:
        raw = _QUOTED_FROM.sub(rb"\1", raw)
    return raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def to_mbox(raw: bytes, sender: str, at: int) -> bytes:
    """Return one email of an mbox, with its first line and the empty line after it."""
    date = datetime.fromtimestamp(at / 1000, UTC).strftime("%a %b %d %H:%M:%S %Y")
    body = _TO_QUOTE.sub(rb">\1", raw.replace(b"\r\n", b"\n"))
    ends = b"\n" if body.endswith(b"\n") else b"\n\n"
    return f"From {sender or 'MAILER-DAEMON'} {date}\n".encode("utf-8", "replace") + body + ends


def walk_mbox(path: Path, now: int) -> Iterator[FiledMail]:
    """Yield the emails. Each begins after a line `From …` at the start of the file or after an empty line."""
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for begin, end in pairwise([*_beginnings(content), len(content)]):
            line_end = content.find(b"\n", begin, end)
            start = end if line_end == -1 else line_end + 1
            from_line, head = (
                content[begin : min(start, begin + LINE_BYTES)],
                content[start : start + HEAD_BYTES],
            )
            yield _described(path, start, end - start, from_line, head[: end - start], now)


def _beginnings(content: mmap.mmap) -> Iterator[int]:
    at = content.find(FROM)
    while at != -1:
        before = content[max(0, at - 3) : at]
        if before.endswith(EMPTY_LINES) or before in (b"", b"\n", b"\r\n"):
            yield at
        at = content.find(FROM, at + len(FROM))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _described(
    path: Path, start: int, length: int, from_line: bytes, beginning: bytes, now: int
) -> FiledMail:
    block = headers.split(beginning, 0)
    head = beginning[: block.body_start]
    line = _FROM_LINE.match(from_line)
    returned = _RETURN_PATH.search(head)
    sender = returned[1] if returned else line[1] if line else b""
    written = _DATE.search(head)
    at = _moment(written[1] if written else b"", now) or _moment(line[2] if line else b"", now) or now
    message_id = message_id_of(block.headers) if len(head) < len(beginning) else ""
    return FiledMail(path, start, length, at, sender.decode("utf-8", "replace"), message_id)


def _moment(text: bytes, now: int) -> int | None:
    """Return None if unreadable or before there was mail; a date in the future becomes now."""
    words = text.decode("latin-1").strip()
    for read_date in (parsedate_to_datetime, _from_line_date):
        try:
            found = read_date(words)
            zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
            moment = int(zoned.timestamp() * 1000)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
        if moment >= EARLIEST:
            return min(moment, now)
    return None


def _from_line_date(words: str) -> datetime:
    return datetime.strptime(words, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)

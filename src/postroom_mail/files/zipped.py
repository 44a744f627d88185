"""Text of zip files: the names of the files, then the text of each that has one."""

from collections.abc import Iterator

from postroom_mail.files.archive import Archive
from postroom_mail.files.extraction import MAX_CONTENT_BYTES
from postroom_mail.files.outcome import Encrypted, ReadInside
from postroom_mail.mime.charset import clean_line

MAX_NAMES = 1_000
MAX_NAME_CHARS = 500
# Names take at most part of the text, so that there is room for what is inside.
MAX_LISTED_CHARS = 20_000


def zip_text(archive: Archive, read_inside: ReadInside) -> Iterator[str]:
    names = [name for name in archive.members if not name.endswith("/")][:MAX_NAMES]
    if names and all(archive.is_encrypted(name) for name in names):
        raise Encrypted
    return _pieces(archive, names, read_inside)


def _pieces(archive: Archive, names: list[str], read_inside: ReadInside) -> Iterator[str]:
    yield "".join(f"{_shown(name)}\n" for name in names)[:MAX_LISTED_CHARS]
    for name in names:
        pieces = read_inside("", name, _content(archive, name))
        if (first := next(pieces, None)) is not None:
            yield f"\n{_shown(name)}:\n{first}"
            yield from pieces
            yield "\n"


def _content(archive: Archive, name: str) -> bytes:
    """Return the bytes of a member; none if it is too large, damaged, or needs a password."""
    if archive.is_encrypted(name) or archive.members[name].file_size > MAX_CONTENT_BYTES:
        return b""
    try:
        return archive.content(name, MAX_CONTENT_BYTES)
    except Exception:
        # A damaged member fails in one of many ways; the others may be whole.
        return b""


def _shown(name: str) -> str:
    return clean_line(name[:MAX_NAME_CHARS])

"""Text of an attachment, whatever it claims to be. Meant for a child process: hostile files may be slow."""

import codecs
import csv
import email
import email.header
import email.message
import io
import re
from collections.abc import Callable, Iterator

from postroom.mail.archive import Archive
from postroom.mail.extraction import MAX_CONTENT_BYTES, MAX_TEXT_CHARS, Extraction
from postroom.mail.office import (
    is_open_document,
    is_presentation,
    is_word_document,
    open_document_text,
    presentation_text,
    word_text,
)
from postroom.mail.text import html_to_text, visible
from postroom.mail.workbook import is_workbook, old_workbook_text, workbook_text

MAX_DECODED_BYTES = 4_000_000
MAX_MAIL_PARTS = 200
SNIFFED_BYTES = 8_192
# Codecs of the standard library that take more than linear time.
SLOW_CODECS = frozenset({"idna", "punycode"})


CSV_TYPES = frozenset({"text/csv", "text/tab-separated-values", "application/csv"})
CSV_ENDINGS = frozenset({"csv", "tsv", "tab"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HTML_ENDINGS = frozenset({"html", "htm", "xhtml"})
TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/ics",
        "application/javascript",
        "application/sql",
        "application/x-ndjson",
        "application/x-sh",
    }
)
TEXT_ENDINGS = frozenset(
    {
        *(
            "txt",
            "text",
            "md",
            "markdown",
            "rst",
            "log",
            "json",
            "jsonl",
            "ndjson",
            "xml",
            "yaml",
            "yml",
            "toml",
        ),
        *("ini", "cfg", "conf", "ics", "vcf", "srt", "tex", "sql", "py", "js", "ts", "sh", "diff", "patch"),
    }
)
UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "application/x-unknown", "binary/octet-stream"})
MAIL_FIELDS = ("From", "To", "Cc", "Date", "Subject")

_PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|II\*\x00|MM\x00\*|BM.{4}\x00{4}|RIFF.{4}WEBP", re.DOTALL
)
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORKBOOK_STREAMS = ("Workbook".encode("utf-16-le"), "Book".encode("utf-16-le"))
_HTML_START = re.compile(rb"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"""charset\s{0,5}=\s{0,5}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
_LINE_END = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BLANK_RUN = re.compile(r"\n{3,}")

# Reads the letters of a picture. Given by the caller, since it needs a program of its own.
PictureReader = Callable[[bytes], str]


class Unsupported(Exception):
    """A kind of file that holds no text for us."""


def extract(
    content_type: str, filename: str, content: bytes, read_picture: PictureReader | None = None
) -> Extraction:
    if len(content) > MAX_CONTENT_BYTES:
        return Extraction("skipped_too_large", None)
    try:
        method, pieces = _reader(content_type.lower(), _ending(filename), content, read_picture)
        return Extraction(method, _gathered(pieces))
    except Unsupported:
        return Extraction("unsupported", None)
    except Exception:
        # Readers of a dozen formats fail in as many ways on broken files; each means the same here.
        return Extraction("failed", None)
    except BaseException as error:
        if not _is_panic(error):
            raise
        return Extraction("failed", None)


def _is_panic(error: BaseException) -> bool:
    """Rust code that gives up raises an exception that is no Exception, and cannot be imported."""
    return type(error).__name__ == "PanicException"


def _gathered(pieces: Iterator[str]) -> str:
    """Clean text up to the limit. What a broken file gave before it broke is kept."""
    parts: list[str] = []
    room = MAX_TEXT_CHARS
    try:
        for piece in pieces:
            parts.append(clean(piece)[:room])
            room -= len(parts[-1])
            if room <= 0:
                break
    except Exception:
        if room == MAX_TEXT_CHARS:
            raise
    return _tidy("".join(parts))


def clean(text: str) -> str:
    """Text without NUL, control characters, lone surrogates, or characters that show nothing."""
    return visible(_UNPRINTABLE.sub("", _LINE_END.sub("\n", text)))


def _tidy(text: str) -> str:
    lines = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _BLANK_RUN.sub("\n\n", lines).strip("\n")


def _ending(filename: str) -> str:
    return filename.rpartition(".")[2].lower() if "." in filename else ""


def _reader(
    content_type: str, ending: str, content: bytes, read_picture: PictureReader | None
) -> tuple[str, Iterator[str]]:
    """The method, and the pieces of text to come. What the bytes say outweighs the name and the type."""
    kind = content_type.partition(";")[0].strip()
    if content.startswith(b"%PDF-") or ("pdf" in (ending, kind[-3:]) and b"%PDF-" in content[:1024]):
        return "pdf", _pdf_pieces(content)
    if content.startswith(b"PK\x03\x04"):
        return "office", _archive_pieces(content)
    if content.startswith(_OLD_OFFICE):
        return "office", _old_office_pieces(content)
    if _PICTURE.match(content):
        return "ocr", _picture_pieces(content, read_picture)
    if _is_binary(content):
        raise Unsupported
    return _text_reader(kind, content_type, ending, content)


def _text_reader(kind: str, content_type: str, ending: str, content: bytes) -> tuple[str, Iterator[str]]:
    text = decode(content, content_type)
    if kind in CSV_TYPES or ending in CSV_ENDINGS:
        return "csv", _table_pieces(text, tabs=ending in ("tsv", "tab") or "tab-" in kind)
    if kind == "message/rfc822" or ending == "eml":
        return "text", _mail_pieces(content)
    if kind in HTML_TYPES or ending in HTML_ENDINGS or _HTML_START.match(content):
        return "html", iter([html_to_text(text)])
    if _is_text_kind(kind) or ending in TEXT_ENDINGS or (kind in UNKNOWN_TYPES and _is_utf8(content)):
        return "text", iter([text])
    raise Unsupported


def _is_text_kind(kind: str) -> bool:
    if kind in ("text/rtf", "image/svg+xml"):
        return False
    return kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml", "+yaml"))


def _is_binary(content: bytes) -> bool:
    head = content[:SNIFFED_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        return False
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    return b"\0" in head or head.startswith(b"{\\rtf") or controls * 20 > len(head)


def _is_utf8(content: bytes) -> bool:
    return _decoded(content[:MAX_DECODED_BYTES], "utf-8") is not None


def decode(content: bytes, content_type: str) -> str:
    """Bytes as text: by the mark at their start, as UTF-8, as declared, else as Windows-1252."""
    head = content[:MAX_DECODED_BYTES]
    for mark, charset in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return head.decode(charset, "replace")
    declared = _CHARSET.search(content_type)
    for charset in ("utf-8", *([declared[1]] if declared else [])):
        text = _decoded(head, charset)
        if text is not None:
            return text
    return head.decode("cp1252", "replace")


def _decoded(head: bytes, charset: str) -> str | None:
    try:
        codec = codecs.lookup(charset)
        if codec.name in SLOW_CODECS:
            return None
        # Not final: the cut may go through a character.
        decoded = codecs.getincrementaldecoder(codec.name)().decode(head)
    except (LookupError, ValueError):
        return None
    return decoded if isinstance(decoded, str) else None


def _pdf_pieces(content: bytes) -> Iterator[str]:
    import pypdfium2  # only the extraction child pays for it

    document = pypdfium2.PdfDocument(content)
    try:
        for number in range(len(document)):
            page = document[number]
            words = page.get_textpage()
            yield words.get_text_range(0, min(words.count_chars(), MAX_TEXT_CHARS)) + "\n\n"
            words.close()
            page.close()
    finally:
        document.close()


def _archive_pieces(content: bytes) -> Iterator[str]:
    archive = Archive.open(content)
    if is_word_document(archive):
        return word_text(archive)
    if is_workbook(archive):
        return workbook_text(archive)
    if is_presentation(archive):
        return presentation_text(archive)
    if is_open_document(archive):
        return open_document_text(archive)
    raise Unsupported


def _old_office_pieces(content: bytes) -> Iterator[str]:
    if not any(stream in content for stream in _WORKBOOK_STREAMS):
        raise Unsupported
    return old_workbook_text(content)


def _picture_pieces(content: bytes, read_picture: PictureReader | None) -> Iterator[str]:
    if read_picture is None:
        raise Unsupported
    return iter([read_picture(content)])


def _table_pieces(text: str, *, tabs: bool) -> Iterator[str]:
    delimiter = "\t" if tabs else _delimiter(text[:SNIFFED_BYTES])
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        yield "\t".join(" ".join(cell.split()) for cell in row) + "\n"


def _delimiter(head: str) -> str:
    return max(",;\t|", key=head.count)


def _mail_pieces(content: bytes) -> Iterator[str]:
    message = email.message_from_bytes(content[:MAX_DECODED_BYTES])
    for name in MAIL_FIELDS:
        if value := message.get(name):
            yield f"{name}: {_header_text(str(value))}\n"
    yield "\n"
    parts = [part for part, _ in zip(message.walk(), range(MAX_MAIL_PARTS), strict=False)]
    plain = [part for part in parts if part.get_content_type() == "text/plain"]
    for part in plain or [part for part in parts if part.get_content_type() == "text/html"]:
        yield _part_text(part) + "\n"


def _header_text(value: str) -> str:
    try:
        return " ".join(str(email.header.make_header(email.header.decode_header(value))).split())
    except (LookupError, ValueError, email.errors.HeaderParseError):
        return value


def _part_text(part: "email.message.Message[str, str]") -> str:
    payload = part.get_payload(decode=True)
    text = decode(payload if isinstance(payload, bytes) else b"", str(part.get("Content-Type", "")))
    return html_to_text(text) if part.get_content_type() == "text/html" else text

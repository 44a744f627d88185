"""Extracts the text of an attachment, whatever it claims to be, in a child process: files may be hostile.

A reader is loaded with the first file of its kind.
"""

import re
import time
from collections.abc import Callable, Iterator
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from postroom_mail.files import archive, calendar, plain, rtf, vcard
from postroom_mail.files.archive import Archive, UnpackingBudget
from postroom_mail.files.extraction import MAX_CONTENT_BYTES, MAX_TEXT_CHARS, MAX_WHOLE_CHARS, Extraction
from postroom_mail.files.old_office.compound import MAGIC as COMPOUND_MAGIC
from postroom_mail.files.outcome import Encrypted, Unsupported
from postroom_mail.html.markup import names
from postroom_mail.html.text import html_to_text, visible

# A zip in a zip, an email in an email: deeper ones are named but not opened.
MAX_DEPTH = 3
# The part of a text that a message shows is worth a wait, the rest only a short one.
REST_SECONDS = 3.0
UNREAD_REST = "[The rest of this file could not be read]"

CSV_TYPES = frozenset({"text/csv", "text/tab-separated-values", "application/csv"})
CSV_ENDINGS = frozenset({"csv", "tsv", "tab"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HTML_ENDINGS = frozenset({"html", "htm", "xhtml"})
MAIL_TYPES = frozenset({"message/rfc822", "message/global"})
PAGE_TYPES = frozenset({"multipart/related", "application/x-mimearchive"})
TEXT_TYPES = frozenset(
    f"application/{name}" for name in names("json xml yaml x-yaml toml ics javascript sql x-ndjson x-sh")
)
TEXT_ENDINGS = names(
    "txt text md markdown rst log json jsonl ndjson xml yaml yml toml ini cfg conf ics vcf srt tex sql "
    "py js ts sh diff patch"
)
TNEF_MAGIC = b"\x78\x9f\x3e\x22"
UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "application/x-unknown", "binary/octet-stream"})

_PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|II\*\x00|MM\x00\*|BM.{4}\x00{4}|RIFF.{4}WEBP", re.DOTALL
)
_HTML_START = re.compile(rb"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BLANK_RUN = re.compile(r"\n{3,}")

# Reads text in a picture. Passed by the caller, since it needs another program.
PictureReader = Callable[[bytes], str]
# The method, and the pieces of text to come.
Readable = tuple[str, Iterator[str]]


def extract(
    content_type: str, filename: str, content: bytes, read_picture: PictureReader | None = None
) -> Extraction:
    if len(content) > MAX_CONTENT_BYTES:
        return Extraction("skipped_too_large", None)
    try:
        method, pieces = _Opener(read_picture).open(content_type, filename, content)
        text = _gathered(pieces)
        if method == "pdf" and not any(map(str.isalnum, text)):
            return _of_scanned(content, read_picture)
        return Extraction(method, text)
    except Unsupported:
        return Extraction("unsupported", None)
    except Encrypted:
        return Extraction("encrypted", None)
    except Exception:
        # Readers of a dozen formats fail in many ways on broken files; all mean the same here.
        return Extraction("failed", None)
    except BaseException as error:
        if not _is_panic(error):
            raise
        return Extraction("failed", None)


def _of_scanned(content: bytes, read_picture: PictureReader | None) -> Extraction:
    """Return the text read from a PDF of scanned pages, or that there are only pictures."""
    if read_picture is None:
        return Extraction("image_only", None)
    from postroom_mail.files.pdf import pages

    text = _gathered(f"{read_picture(page)}\n" for page in pages.page_pictures(content))
    if not text.strip():
        return Extraction("image_only", None)
    return Extraction("ocr", _gathered(chain([f"{text}\n"], pages.signatures(content))))


def _is_panic(error: BaseException) -> bool:
    """Return whether Rust code panicked: its exception is no Exception, and cannot be imported."""
    return type(error).__name__ == "PanicException"


def _gathered(pieces: Iterator[str]) -> str:
    """Clean text up to the limit. The text of a broken file is kept, with a note that it is incomplete."""
    parts: list[str] = []
    room = MAX_WHOLE_CHARS
    late = time.monotonic() + REST_SECONDS
    try:
        for piece in pieces:
            parts.append(clean(piece)[:room])
            room -= len(parts[-1])
            if room <= 0 or (MAX_WHOLE_CHARS - room >= MAX_TEXT_CHARS and time.monotonic() > late):
                break
    except Exception:
        if room == MAX_WHOLE_CHARS:
            raise
        parts.append(f"\n{UNREAD_REST}"[: max(room, 0)])
    return _tidy("".join(parts))


def clean(text: str) -> str:
    """Return text without NUL, control characters, lone surrogates or invisible characters."""
    return visible(_UNPRINTABLE.sub("", _LINE_END.sub("\n", text)))


def _tidy(text: str) -> str:
    lines = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _BLANK_RUN.sub("\n\n", lines).strip("\n")


def _ending(filename: str) -> str:
    return filename.rpartition(".")[2].lower() if "." in filename else ""


class _Opener(Struct, frozen=True):
    """Opens a file, and the files inside it, with one budget."""

    read_picture: PictureReader | None
    depth: int = 0
    budget: UnpackingBudget = field(default_factory=UnpackingBudget)

    def open(self, content_type: str, filename: str, content: bytes) -> Readable:
        """Open a file as what its bytes show. They count more than the name and the type."""
        content_type, ending = content_type.lower(), _ending(filename)
        kind = content_type.partition(";")[0].strip()
        if content.startswith(b"%PDF-") or ("pdf" in (ending, kind[-3:]) and b"%PDF-" in content[:1024]):
            from postroom_mail.files.pdf import pages

            return "pdf", pages.pdf_text(content)
        if content.startswith(archive.MAGIC):
            return self._zip(content)
        if content.startswith(COMPOUND_MAGIC):
            return "office", self._compound(content)
        if content.startswith(TNEF_MAGIC):
            from postroom_mail.files.old_office.tnef import tnef_text

            return "archive", tnef_text(content, self.read_inside)
        if _PICTURE.match(content):
            return "ocr", self._picture(content)
        if rtf.is_rtf(content):
            return "office", rtf.rtf_text(content)
        if plain.is_binary(content):
            raise Unsupported
        return self._text(kind, content_type, ending, content)

    def read_inside(self, content_type: str, filename: str, content: bytes) -> Iterator[str]:
        """Yield the text of a file inside, if it has any; its errors are ignored."""
        if not content or self.depth >= MAX_DEPTH or not self.budget.takes_one_more():
            return
        try:
            # Letters in pictures take seconds each, and one file may hold hundreds.
            inner = replace(self, depth=self.depth + 1, read_picture=None)
            yield from inner.open(content_type, filename, content)[1]
        except Exception:
            return
        except BaseException as error:
            if not _is_panic(error):
                raise

    def _zip(self, content: bytes) -> Readable:
        from postroom_mail.files import epub, office, workbook, zipped

        opened = Archive.open(content, self.budget)
        if office.is_word_document(opened):
            return "office", office.word_text(opened, self.read_inside)
        if workbook.is_workbook(opened):
            return "office", workbook.workbook_text(opened)
        if office.is_presentation(opened):
            return "office", office.presentation_text(opened)
        if epub.is_book(opened):
            return "office", epub.book_text(opened)
        if office.is_open_document(opened):
            return "office", office.open_document_text(opened)
        return "archive", zipped.zip_text(opened, self.read_inside)

    def _compound(self, content: bytes) -> Iterator[str]:
        from postroom_mail.files.old_office import outlook, slides97, word97, workbook97
        from postroom_mail.files.old_office.compound import CompoundFile

        file = CompoundFile.open(content)
        streams = file.items()
        if "encryptedpackage" in streams:
            raise Encrypted
        if word97.is_word(streams):
            return word97.word97_text(file)
        if workbook97.is_old_workbook(streams):
            return workbook97.workbook97_text(file)
        if slides97.is_slides(streams):
            return slides97.slides97_text(file)
        if outlook.is_outlook(streams):
            return outlook.outlook_text(file, self.read_inside)
        raise Unsupported

    def _picture(self, content: bytes) -> Iterator[str]:
        if self.read_picture is None:
            raise Unsupported
        return iter([self.read_picture(content)])

    def _text(self, kind: str, content_type: str, ending: str, content: bytes) -> Readable:
        if kind in MAIL_TYPES or ending == "eml":
            from postroom_mail.files import attached_email

            return "text", attached_email.email_text(content, self.read_inside)
        if kind in PAGE_TYPES or ending in ("mht", "mhtml"):
            from postroom_mail.files import attached_email

            return "html", attached_email.saved_page_text(content)
        if calendar.is_calendar(content):
            return "text", calendar.calendar_text(content)
        if vcard.is_card(content):
            return "text", vcard.card_text(content)
        text = plain.decode(content, content_type)
        if kind in CSV_TYPES or ending in CSV_ENDINGS:
            return "csv", plain.table_text(text, has_tabs=ending in ("tsv", "tab") or "tab-" in kind)
        if kind in HTML_TYPES or ending in HTML_ENDINGS or _HTML_START.match(content):
            return "html", iter([html_to_text(text)])
        if (
            _is_text_kind(kind)
            or ending in TEXT_ENDINGS
            or (kind in UNKNOWN_TYPES and plain.is_utf8(content))
        ):
            return "text", iter([text])
        raise Unsupported


def _is_text_kind(kind: str) -> bool:
    if kind in ("text/rtf", "image/svg+xml"):
        return False
    return kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml", "+yaml"))

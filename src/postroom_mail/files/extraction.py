"""The result of extracting text, and its limits. The readers themselves are loaded only in a child."""

from msgspec import Struct

MAX_CONTENT_BYTES = 10 * 1024 * 1024
MAX_TEXT_CHARS = 50_000  # as much as a message shows, and one piece of a longer text
MAX_WHOLE_CHARS = 1_000_000  # of all pieces together
METHODS = frozenset({"pdf", "office", "csv", "html", "text", "ocr", "archive"})
REASONS = frozenset({"unsupported", "encrypted", "image_only", "skipped_too_large", "timed_out", "failed"})


class Extraction(Struct, frozen=True):
    """How the text was found, or why there is none. `text` is all of it."""

    method: str
    text: str | None

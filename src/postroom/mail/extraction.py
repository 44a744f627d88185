"""What the extraction of a text gives, and its bounds. The readers themselves are loaded in a child only."""

from msgspec import Struct

MAX_CONTENT_BYTES = 10 * 1024 * 1024
MAX_TEXT_CHARS = 50_000  # as much as stands in a message, and in one piece of a longer text
MAX_WHOLE_CHARS = 1_000_000  # of all pieces together
METHODS = frozenset({"pdf", "office", "csv", "html", "text", "ocr", "archive"})
REASONS = frozenset({"unsupported", "encrypted", "image_only", "skipped_too_large", "timed_out", "failed"})


class Extraction(Struct, frozen=True):
    """How the text was found, or the reason why there is none. `text` is all of it."""

    method: str
    text: str | None

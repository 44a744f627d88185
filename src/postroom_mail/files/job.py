"""Messages between the pool and a child, and their size limits."""

import msgspec

from postroom_mail.files.extraction import MAX_CONTENT_BYTES, MAX_WHOLE_CHARS, METHODS, REASONS, Extraction
from postroom_mail.files.message_framing import encode_frame

MAX_NAME_CHARS = 1_000
MAX_JOB_BYTES = MAX_CONTENT_BYTES + 20 * MAX_NAME_CHARS
MAX_PREVIEW_BYTES = 800 * 800 * 3 + 100_000
# A character takes at most four bytes. A child that sends more has been compromised.
MAX_ANSWER_BYTES = max(MAX_WHOLE_CHARS * 4 + 1_000, MAX_PREVIEW_BYTES + 1_000)
_answers = msgspec.msgpack.Decoder(Extraction)  # made once: two threads at once crash msgspec 0.22


class ReadingJob(msgspec.Struct, frozen=True, array_like=True):
    content_type: str
    filename: str
    content: bytes
    is_preview: bool = False  # a small picture of it is wanted, and no text


class Preview(msgspec.Struct, frozen=True, array_like=True):
    png: bytes | None


def job_frame(content_type: str, filename: str, content: bytes, *, is_preview: bool = False) -> bytes:
    return encode_frame(ReadingJob(_encodable(content_type), _encodable(filename), content, is_preview))


class NotAnAnswer(Exception):
    """A child sent something else: it has been compromised."""


def read_answer(body: bytes) -> Extraction:
    """Return the text that a child found. Raises NotAnAnswer for anything that no reader would give."""
    try:
        answer = _answers.decode(body)
    except msgspec.MsgspecError as error:
        raise NotAnAnswer from error
    has_text = answer.text is not None
    if answer.method not in (METHODS if has_text else REASONS) or len(answer.text or "") > MAX_WHOLE_CHARS:
        raise NotAnAnswer
    return answer


def _encodable(name: str) -> str:
    """Names of attachments are untrusted and may have lone surrogates. The end matters: `.pdf`."""
    return name[-MAX_NAME_CHARS:].encode("utf-8", "replace").decode()

"""The child process: reads jobs from its input, extracts under limits, and writes answers.

Run as `python -m postroom_mail.files.child MEMORY_BYTES CPU_SECONDS PARENT_PID`.
"""

import os
import sys
from typing import BinaryIO

import msgspec

from postroom_mail.files import ocr
from postroom_mail.files.child_limits import (
    allow_processor_seconds,
    close_other_files,
    confine,
    die_with_parent,
    peak_memory_bytes,
)
from postroom_mail.files.extract import extract
from postroom_mail.files.extraction import Extraction
from postroom_mail.files.job import MAX_JOB_BYTES, Preview, ReadingJob
from postroom_mail.files.message_framing import LENGTH, encode_frame


def main(memory_bytes: int, cpu_seconds: int, parent_pid: int) -> None:
    die_with_parent()
    if os.getppid() != parent_pid:
        return
    close_other_files()
    answers = _private_output()
    confine(memory_bytes)
    while (job := _next_job(sys.stdin.buffer)) is not None:
        allow_processor_seconds(cpu_seconds)
        answers.write(encode_frame(_draw(job) if job.is_preview else _answer(job)))
        answers.flush()
        if peak_memory_bytes() > memory_bytes // 2:
            return


def _private_output() -> BinaryIO:
    """Keep the output for answers to the pool: libraries must not write between them."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return answers


def _next_job(stream: BinaryIO) -> ReadingJob | None:
    """Return the next job; None if the pool has closed its end."""
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(header)
    body = stream.read(size) if size <= MAX_JOB_BYTES else b""
    return msgspec.msgpack.decode(body, type=ReadingJob) if len(body) == size else None


def _draw(job: ReadingJob) -> Preview:
    """Draw a preview. Files are broken in many ways; each means that there is none."""
    from postroom_mail.files.pictures.preview import preview

    try:
        return Preview(preview(job.content))
    except Exception:
        return Preview(None)


def _answer(job: ReadingJob) -> Extraction:
    reader = ocr.read_picture if ocr.is_installed() else None
    return extract(job.content_type, job.filename, job.content, reader)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))

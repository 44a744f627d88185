"""The text of one file, read in a child process: a hostile file costs only its own text. Linux and macOS."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from postroom_mail.files.extraction import MAX_CONTENT_BYTES, Extraction
from postroom_mail.files.job import MAX_ANSWER_BYTES, NotAnAnswer, job_frame, read_answer
from postroom_mail.files.message_framing import FrameDecoder, FrameTooLarge

PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TESSDATA_PREFIX")  # no key and no secret is among them
CHUNK_BYTES = 64 * 1024


def file_text(
    content: bytes,
    filename: str = "",
    content_type: str = "",
    *,
    memory_bytes: int = 1024**3,
    cpu_seconds: int = 10,
    deadline_seconds: float = 30.0,
) -> Extraction:
    """Return the text of a file, and how it was found: PDF, Office, HTML, archives, emails and plain text.

    The bytes decide how it is read, then name and type. Without a text, `method` says why: `unsupported`,
    `encrypted`, `image_only`, `skipped_too_large` (over 10 MB), `timed_out` or `failed`. A child process with
    these limits reads the file; nothing is raised for what is in it.

    >>> file_text(b"<h1>Invoice</h1><p>Due on Friday</p>", "invoice.html")
    Extraction(method='html', text='Invoice\\n\\nDue on Friday')
    """
    if len(content) > MAX_CONTENT_BYTES:
        return Extraction("skipped_too_large", None)
    limits = (memory_bytes, cpu_seconds, os.getpid())
    command = ["-m", "postroom_mail.files.child", *map(str, limits)]
    return _ask(command, job_frame(content_type, filename, content), time.monotonic() + deadline_seconds)


def _ask(command: Sequence[str], job: bytes, ends_at: float) -> Extraction:
    """Return what a Python run with these arguments answers to the job; it is killed then, with its group."""
    try:
        process = subprocess.Popen(  # noqa: S603 the interpreter that runs this
            [sys.executable, "-P", *command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
    except OSError:
        return Extraction("failed", None)
    with process:
        try:
            return read_answer(_exchange(process, job, ends_at))
        except TimeoutError:
            return Extraction("timed_out", None)
        except (NotAnAnswer, FrameTooLarge):
            return Extraction("failed", None)
        except (EOFError, OSError):
            pass  # it has ended, or closed its end: its status says why
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return Extraction("timed_out" if process.returncode == -signal.SIGXCPU else "failed", None)


def _environment() -> dict[str, str]:
    """Return the child's environment.

    It imports from where this process does, not from its working directory.
    """
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return passed | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _exchange(process: "subprocess.Popen[bytes]", job: bytes, ends_at: float) -> bytes:
    """Write the job and return the body of the answer, whichever way the child drags its feet."""
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    left, decoder = memoryview(job), FrameDecoder(MAX_ANSWER_BYTES)
    with selectors.DefaultSelector() as pipes:
        pipes.register(process.stdin, selectors.EVENT_WRITE)
        pipes.register(process.stdout, selectors.EVENT_READ)
        while True:
            seconds = ends_at - time.monotonic()
            ready = pipes.select(seconds) if seconds > 0 else []
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    left = left[os.write(key.fd, left[:CHUNK_BYTES]) :]
                    if not left:
                        pipes.unregister(process.stdin)
                elif data := os.read(key.fd, CHUNK_BYTES):
                    for body in decoder.feed(data):
                        return body
                else:
                    raise EOFError

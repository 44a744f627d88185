"""One file is read in a child process of its own, and whatever it does to the child stays with it."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from postroom_mail import Extraction, file_text
from postroom_mail.files import file_text as one_file
from postroom_mail.files.extraction import MAX_CONTENT_BYTES
from postroom_mail.files.job import MAX_ANSWER_BYTES, job_frame
from postroom_mail.files.message_framing import LENGTH, encode_frame
from tests.extraction import pdf_files
from tests.extraction.test_pool import is_running, needs_proc, slow_file
from tests.mail import files
from tests.samples import samples
from tests.waiting import wait_until

FAILED, TIMED_OUT = Extraction("failed", None), Extraction("timed_out", None)
JOB = job_frame("text/plain", "a.txt", b"hello")
LARGE_JOB = job_frame("text/plain", "a.txt", bytes(1_000_000))
WRITE = "import sys; sys.stdout.buffer.write(bytes.fromhex('{}')); sys.stdout.flush(); {}"


def ask(code: str, job: bytes = JOB, seconds: float = 60.0) -> Extraction:
    """What a child that runs this code instead is taken to answer."""
    return one_file._ask(["-c", code], job, time.monotonic() + seconds)


def writes(answer: bytes, then: str = "sys.stdin.read()") -> str:
    return WRITE.format(answer.hex(), then)


def test_files_are_read_by_their_bytes() -> None:
    assert file_text(b"hello", "a.txt", "text/plain") == Extraction("text", "hello")
    assert file_text(files.pdf("words")) == Extraction("pdf", "words")
    assert file_text(files.docx("<w:p><w:r><w:t>Hi</w:t></w:r></w:p>"), "a.bin") == Extraction("office", "Hi")


def test_a_name_with_lone_surrogates_passes() -> None:
    assert file_text(b"hello", "\ud800" * 5_000 + ".txt", "text/\udcff").text == "hello"


def test_a_large_file_passes_and_a_larger_one_needs_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_text(b"\0" * MAX_CONTENT_BYTES).method == "unsupported"
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert file_text(bytes(MAX_CONTENT_BYTES + 1)) == Extraction("skipped_too_large", None)
    assert file_text(b"hello") == FAILED  # the child cannot be started


def test_a_slow_file_is_given_up_at_the_deadline_or_with_its_processor_time() -> None:
    assert file_text(slow_file(), deadline_seconds=0.5) == TIMED_OUT
    assert file_text(slow_file(), cpu_seconds=0, deadline_seconds=120.0) == TIMED_OUT


@pytest.mark.needs("/proc")
def test_a_file_that_needs_too_much_memory_fails() -> None:
    unpacked_as_a_whole = pdf_files.document(b"(a)" + b" " * 110_000_000, is_packed=True)
    assert file_text(unpacked_as_a_whole, memory_bytes=100 * 1024**2, deadline_seconds=120.0) == FAILED


@samples("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_child_that_is_killed_gave_no_text(number: int) -> None:
    assert ask(f"import os; os.kill(os.getpid(), {int(number)})") == FAILED


def test_a_child_out_of_processor_time_ran_out_of_time() -> None:
    assert ask(f"import os; os.kill(os.getpid(), {int(signal.SIGXCPU)})") == TIMED_OUT


@samples("code", ["pass", "import sys; sys.stdin.close(); sys.stdout.close()", "raise SystemExit(1)"])
def test_a_child_that_ends_without_an_answer_gave_no_text(code: str) -> None:
    assert ask(code) == FAILED
    assert ask(code, LARGE_JOB) == FAILED


@samples(
    "answer",
    [
        LENGTH.pack(MAX_ANSWER_BYTES + 1),
        LENGTH.pack(2**32 - 1) + b"x" * 100,
        LENGTH.pack(0),
        LENGTH.pack(3) + b"\xc1\xc1\xc1",
        encode_frame({"method": "text", "text": 5}),
        encode_frame({"method": "made up", "text": "x"}),
        encode_frame({"method": "timed_out", "text": "x"}),
        encode_frame({"method": "text", "text": None}),
    ],
)
def test_an_answer_that_is_none_is_not_believed(answer: bytes) -> None:
    assert ask(writes(answer)) == FAILED


def test_a_text_over_the_limit_is_not_believed() -> None:
    frame = "import msgspec, struct; b = msgspec.msgpack.encode(dict(method='text', text='x' * 1_000_001))"
    code = f"import sys; {frame}; sys.stdout.buffer.write(struct.pack('>I', len(b)) + b); sys.stdout.flush()"
    assert ask(code) == FAILED


def test_a_child_that_announces_more_than_it_sends_is_given_up() -> None:
    assert ask(writes(LENGTH.pack(100) + b"x"), seconds=2.0) == TIMED_OUT
    assert ask(writes(LENGTH.pack(100) + b"x", then="pass")) == FAILED


def test_a_child_that_reads_nothing_or_says_nothing_is_given_up() -> None:
    assert ask("import time; time.sleep(600)", LARGE_JOB, seconds=1.0) == TIMED_OUT
    assert ask("import sys; sys.stdin.read()", seconds=1.0) == TIMED_OUT
    assert ask("import time; time.sleep(600)", seconds=-1.0) == TIMED_OUT


@needs_proc
def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    inner = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = (
        f"import os, subprocess as s, sys; s.Popen([sys.executable, '-c', {inner!r}], stdout=s.DEVNULL)\n"
        f"while not os.path.exists({str(started)!r}) or not os.path.getsize({str(started)!r}): pass\n"
        "os.close(1); sys.stdin.read()"
    )
    assert ask(code) == FAILED
    pid = int(started.read_text())
    wait_until(lambda: not is_running(pid))


def test_the_child_sees_no_secret_and_imports_nothing_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", "secret")
    assert file_text(b"hello", "a.txt").text == "hello"
    assert "API_KEY" not in one_file._environment()
    assert "" not in one_file._environment()["PYTHONPATH"].split(os.pathsep)

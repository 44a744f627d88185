"""Mailboxes as files: every mail is found, in the order of dates, and reads as it was."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.clock import DAY
from postroom.transfer import mbox
from tests.doubles import START

HEAD = b"From: ann@example.com\r\nDate: Mon, 2 Nov 2026 10:00:00 +0100\r\nSubject: one\r\n"
FIRST = HEAD + b"\r\nFrom here\r\n>From there\r\n"
SECOND = b"Return-Path: <bob@example.com>\r\nSubject: two\r\n\r\nno date, no end"


def test_an_mbox_gives_back_what_was_put_in_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "mbox"
    later = START - DAY
    path.write_bytes(mbox.to_mbox(SECOND, "bob@example.com", later) + mbox.to_mbox(FIRST, "", 0))
    first, second = mbox.list_mbox(path, START)
    assert mbox.read(first).rstrip() == FIRST.rstrip()
    assert mbox.read(second).rstrip() == SECOND
    assert (first.at, second.at) == (1793610000000, later // 1000 * 1000)
    assert (first.mail_from, second.mail_from) == ("MAILER-DAEMON", "bob@example.com")


def test_a_maildir_is_read_with_its_folders(tmp_path: Path) -> None:
    for place, raw in (("cur", FIRST), ("new", SECOND), (".Sent/cur", FIRST)):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1.mail").write_bytes(raw.replace(b"\r\n", b"\n"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "half").write_bytes(b"half a mail")
    found = mbox.list_maildir(tmp_path, START)
    assert [mbox.read(mail) for mail in found] == [FIRST, FIRST, SECOND]


@given(
    content=st.lists(st.sampled_from([b"From a b\n", b"\n", b"Date: x\n", b"From \n", b"\xff", b">From "]))
)
def test_no_file_is_too_odd(content: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("odd") / "mbox"
    path.write_bytes(b"".join(content))
    for mail in mbox.list_mbox(path, START):
        assert mbox.EARLIEST <= mail.at <= START
        mbox.read(mail)

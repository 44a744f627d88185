"""File descriptors, which end before anybody notices."""

import os
import resource
from pathlib import Path

import pytest

from postroom import log
from postroom.processes import descriptors
from postroom_mail.files import child_limits


def test_the_log_tells_when_no_descriptor_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    log.get()._seldom.clear()
    descriptors.warn_if_none_are_left()
    assert capsys.readouterr().err == ""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        descriptors.warn_if_none_are_left()
        descriptors.warn_if_none_are_left()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert capsys.readouterr().err.count("no file descriptors are left") == 1


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_child_closes_what_it_was_not_given(monkeypatch: pytest.MonkeyPatch, is_listed: bool) -> None:
    def no_list(folder: str) -> list[str]:
        raise FileNotFoundError(folder)

    if not is_listed:
        monkeypatch.setattr(os, "listdir", no_list)
    closed: list[int] = []
    monkeypatch.setattr(os, "close", closed.append)
    kept, other = os.pipe()
    child_limits.close_other_files(kept)
    monkeypatch.undo()
    assert other in closed
    assert not {0, 1, 2, kept} & set(closed)
    for number in (kept, other):
        os.close(number)


def test_the_peak_of_memory_is_known_also_where_linux_does_not_tell_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmRSS:\t9 kB\n")
    monkeypatch.setattr("builtins.open", lambda path, mode: Path.open(status, mode))
    assert child_limits.peak_memory_bytes() > 1 << 20

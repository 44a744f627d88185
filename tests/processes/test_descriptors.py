"""File descriptors, which end before anybody notices."""

import os
import resource

import pytest

from postroom import log
from postroom.processes import descriptors


def test_the_log_tells_when_no_descriptor_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    log.get()._seldom.clear()
    descriptors.tell_if_none_are_left()
    assert capsys.readouterr().err == ""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        descriptors.tell_if_none_are_left()
        descriptors.tell_if_none_are_left()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert capsys.readouterr().err.count("no file descriptors are left") == 1

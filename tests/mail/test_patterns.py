"""Patterns that are compiled when somebody first asks them."""

import re

from postroom_mail.languages.patterns import compile_one, late


def test_a_late_pattern_is_written_once_and_only_for_who_asks() -> None:
    written: list[str] = []

    def write() -> str:
        written.append("code")
        return written[-1]

    pattern = late(write, re.IGNORECASE)
    assert written == []
    assert [match.span() for match in pattern.finditer("A Code, a CODE")] == [(2, 6), (10, 14)]
    assert pattern.search("nothing") is None
    assert pattern.search("code") is not None
    assert written == ["code"]


def test_a_late_pattern_is_asked_as_any_other() -> None:
    pattern, other = late(r"(\d)\s"), re.compile(r"(\d)\s")
    assert pattern.sub("-", "1 2 3") == other.sub("-", "1 2 3")
    assert pattern.split("1 2 3") == other.split("1 2 3")
    assert pattern.findall("1 2 3") == other.findall("1 2 3")
    assert pattern.fullmatch("1 2") is None
    assert pattern.pattern == other.pattern


def test_what_nobody_has_asked_yet_can_be_written_before() -> None:
    written: list[str] = []

    def write() -> str:
        written.append("code")
        return written[-1]

    pattern = late(write)
    while compile_one():
        pass
    assert written == ["code"]
    assert not compile_one()
    assert pattern.search("a code") is not None
    assert written == ["code"]

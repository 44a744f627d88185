"""Cost, not size, decides what the event loop reads."""

import pytest

from postroom_mail.html.text import html_to_text
from postroom_mail.html.visibility import MAX_LOOKS
from postroom_mail.mime import parsing_cost
from tests.raw_mails import raw_mail


def test_an_ordinary_mail_is_little() -> None:
    assert parsing_cost.is_little(raw_mail("All work and no play makes Jack a dull boy.\r\n" * 300))


def test_a_line_break_is_one_mark() -> None:
    lines = b"word\r\n" * parsing_cost.MOST_MARKS
    assert parsing_cost.is_little(lines)
    assert not parsing_cost.is_little(lines + b"word\r\n")


@pytest.mark.parametrize("unit", ["<", "<b><p>", "&", "{", "=3C", "a,", "\u200d", '<b style="color:#1">'])
def test_marks_without_end_are_not_little(unit: str) -> None:
    assert not parsing_cost.is_little(raw_mail(unit * (30_000 // len(unit.encode()))))


def test_what_base64_hides_is_not_little() -> None:
    assert not parsing_cost.is_little(raw_mail("PGI+" * 5_000, content_transfer_encoding="base64"))


def test_what_is_large_is_not_little() -> None:
    assert not parsing_cost.is_little(b"a" * (parsing_cost.MOST_BYTES + 1))


def test_brackets_that_are_no_tags_are_text() -> None:
    assert html_to_text("<p>1 < 2 <3 << <></p>") == "1 < 2 <3 << <>"


def test_behind_more_looks_than_any_mail_has_nothing_is_shown() -> None:
    tags = [f'<p style="color:#{number:06x}">seen{number}</p>' for number in range(MAX_LOOKS + 10)]
    text = html_to_text("".join(tags))
    assert "seen4001" not in text.split()
    assert "seen100" in text.split()

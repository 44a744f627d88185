"""Figures that must not become worse; docs/accuracy.md has all of them, and a test compares it."""

import re
from pathlib import Path

from tests.mail import calendar_samples
from tests.mail.calendar_samples import CalendarSample
from tests.samples import samples


@samples("sample", calendar_samples.SAMPLES)
def test_a_calendar_file_tells_what_an_agent_acts_on(sample: CalendarSample) -> None:
    assert sample.wrong() == {}


def test_hardly_any_ordinary_mail_gives_a_code() -> None:
    """tests/test_generated.py counts anew and compares the page."""
    page = (Path(__file__).parents[2] / "docs/accuracy.md").read_text()
    counted = re.search(r"ordinary mail that gives a code: (\d+) of (\d+)", page)
    assert counted, page
    mistaken, all_mails = map(int, counted.groups())
    assert all_mails > 6_000
    assert mistaken <= all_mails // 1_000

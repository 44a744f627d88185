"""The figures of the documents are those that their command prints."""

from pathlib import Path

import pytest

from tests.mail import calendar_samples, figures
from tests.mail.calendar_samples import CalendarSample
from tests.samples import samples

DOCUMENTS = Path(__file__).parents[2] / "docs"


@samples("sample", calendar_samples.SAMPLES)
def test_a_calendar_file_tells_what_an_agent_acts_on(sample: CalendarSample) -> None:
    assert sample.wrong() == {}


def test_hardly_any_ordinary_mail_gives_a_code() -> None:
    mistaken, all_mails = figures.taken_for_codes()
    assert all_mails > 6_000
    assert len(mistaken) <= all_mails // 1_000, mistaken


@pytest.mark.parametrize("part", figures.PARTS)
def test_the_documented_figures_are_those_of_the_command(part: str) -> None:
    document = (DOCUMENTS / ("signals.md" if part == "signals" else "accuracy.md")).read_text()
    for line in figures.PARTS[part]():
        assert line in document

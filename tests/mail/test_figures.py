"""Figures that must not become worse; docs/accuracy.md has all of them, and a test compares it."""

from tests.mail import calendar_samples, figures
from tests.mail.calendar_samples import CalendarSample
from tests.samples import samples


@samples("sample", calendar_samples.SAMPLES)
def test_a_calendar_file_tells_what_an_agent_acts_on(sample: CalendarSample) -> None:
    assert sample.wrong() == {}


def test_hardly_any_ordinary_mail_gives_a_code() -> None:
    mistaken, all_mails = figures.taken_for_codes()
    assert all_mails > 6_000
    assert len(mistaken) <= all_mails // 1_000, mistaken

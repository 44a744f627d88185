"""A span of days as words of the index."""

from datetime import UTC, date, datetime, timedelta

from postroom_mail.search import days
from tests.samples import samples

FIRST = date(2024, 12, 20)
EVERY_DAY = [FIRST + timedelta(number) for number in range(0, 4_000, 3)]


def moment(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


@samples(
    "bound", [date(2024, 12, 31), date(2025, 1, 1), date(2028, 2, 29), date(2029, 12, 31), date(2030, 6, 10)]
)
def test_a_day_has_a_word_before_or_from_a_bound_but_never_both(bound: date) -> None:
    before, since = set(days.words_before(moment(bound))), set(days.words_from(moment(bound)))
    for day in (*EVERY_DAY, bound, bound - timedelta(1)):
        words = set(days.words_of(moment(day) + 86_399_999))
        assert bool(words & before) == (day < bound), day
        assert bool(words & since) == (day >= bound), day


@samples("year", [1, 1970, 2000, 2099, 9999])
def test_a_span_is_few_words_however_far_it_goes(year: int) -> None:
    for day in (date(year, 1, 1), date(year, 12, 31)):
        assert len(days.words_before(moment(day))) <= 63
        assert len(days.words_from(moment(day))) <= 63

"""Series of calendar files: when they take place, also where the file is hostile or lies."""

from datetime import UTC, datetime, timedelta

from postroom_mail.reading.recurrence import MAX_STEPS, StepBudget, read_rule, times
from postroom_mail.reading.series import EPOCH, LATEST, Series, occurrences, read_objects
from postroom_mail.writing.series_file import write_feed
from tests.samples import samples

# RFC 5545, section 3.8.5.3: the rule, its start, and the first times that the standard lists.
STANDARD = [
    ("FREQ=DAILY;INTERVAL=10;COUNT=5", "19970902", "0902 0912 0922 1002 1012"),
    ("FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=4", "19970902", "0902 0916 0930 1014"),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "19970805", "0805 0810 0819 0824"),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "19970805", "0805 0817 0819 0831"),
    ("FREQ=MONTHLY;COUNT=4;BYDAY=1FR", "19970905", "0905 1003 1107 1205"),
    ("FREQ=MONTHLY;BYMONTHDAY=-3", "19970928", "0928 1029 1128 1229"),
    ("FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "19970904", "0904 1007 1106"),
    ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "19970902", "0213 0313 1113"),
    ("FREQ=YEARLY;COUNT=4;BYMONTH=6,7", "19970610", "0610 0710 0610 0710"),
    ("FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200", "19970101", "0101 0410 0719 0101"),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "19970512", "0512 0511 0517"),
    ("FREQ=YEARLY;BYDAY=20MO", "19970519", "0519 0518 0517"),
]
EACH = ",".join(map(str, range(60)))
HOSTILE = [
    "FREQ=SECONDLY",
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MINUTELY;BYYEARDAY=366;BYDAY=MO;INTERVAL=999999",
    f"FREQ=YEARLY;BYHOUR=1,2,3;BYMINUTE={EACH};BYSECOND={EACH};BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=-1",
    "FREQ=DAILY;COUNT=999999;BYDAY=" + ",".join(["MO"] * 400),
]
FILE = """BEGIN:VCALENDAR
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0900
TZOFFSETTO:+0900
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:stand-up
SUMMARY:Stand-up
DTSTART;TZID=Europe/Berlin:20260320T090000
DTEND;TZID=Europe/Berlin:20260320T091500
RRULE:FREQ=WEEKLY;UNTIL=20260417T070000Z
EXDATE;TZID=Europe/Berlin:20260327T090000
RDATE:20260322T100000Z
END:VEVENT
BEGIN:VEVENT
UID:stand-up
RECURRENCE-ID:20260403T070000Z
SUMMARY:Later
DTSTART;TZID=Europe/Berlin:20260403T100000
DURATION:PT30M
END:VEVENT
END:VCALENDAR
"""


@samples("case", STANDARD)
def test_rules_give_the_times_of_the_standard(case: tuple[str, str, str]) -> None:
    written, start, expected = case
    begin = datetime.strptime(f"{start}T090000", "%Y%m%dT%H%M%S")  # noqa: DTZ007 (local time)
    found = []
    for moment in times(read_rule(written), begin, begin, StepBudget()):
        found.append(f"{moment:%m%d}")
        if len(found) == len(expected.split()):
            break
    assert found == expected.split()


@samples("rule", HOSTILE)
def test_a_hostile_rule_ends_after_its_steps_and_leaves_the_first_time(rule: str) -> None:
    raw = f"BEGIN:VEVENT\nUID:a\nDTSTART:20260101T000000Z\nRRULE:{rule}\nEND:VEVENT\n"
    (series,) = read_objects(raw.encode()).series
    steps = StepBudget()
    found = occurrences(series, 0, LATEST, 10 * MAX_STEPS, "UTC", steps)
    assert 1 <= len(found) <= MAX_STEPS
    assert steps.left < MAX_STEPS
    assert shown(found[0].starts_at) == "2026-01-01 00:00"


def shown(moment: int) -> str:
    return f"{EPOCH + timedelta(milliseconds=moment):%Y-%m-%d %H:%M}"


def times_of(series: Series) -> list[str]:
    return [shown(each.starts_at) for each in occurrences(series, 0, LATEST, 100)]


def test_a_series_has_its_exceptions_and_a_known_zone_is_believed_more_than_the_file() -> None:
    """The file says that Berlin is nine hours ahead. Written again, it is the same series."""
    expected = [
        "2026-03-20 08:00",
        "2026-03-22 10:00",
        "2026-04-03 08:00",
        "2026-04-10 07:00",
        "2026-04-17 07:00",
    ]
    (series,) = read_objects(FILE.encode()).series
    assert times_of(series) == expected
    feed = write_feed("Team", [series], datetime(2026, 3, 1, tzinfo=UTC))
    (again,) = read_objects(feed).series
    assert times_of(again) == expected
    assert (again.part.summary, again.overrides[0].part.summary) == ("Stand-up", "Later")


def test_a_crowd_and_a_book_are_cut_and_a_file_without_sense_has_no_event() -> None:
    people = "".join(f"ATTENDEE:mailto:a{number}@example.com\n" for number in range(10_000))
    raw = f"BEGIN:VEVENT\nUID:a\nDTSTART:20260101\n{people}DESCRIPTION:{'x' * 500_000}\nEND:VEVENT\n"
    (series,) = read_objects(raw.encode()).series
    assert len(series.part.attendees) == 500
    assert len(series.part.description) == 20_000
    for raw in ("", "BEGIN:VEVENT", "BEGIN:VEVENT\nDTSTART:99999999\nEND:VEVENT", "BEGIN:VEVENT\nEND:VEVENT"):
        assert read_objects(raw.encode()).series == ()

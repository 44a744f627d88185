"""Hostile calendar files, made from a seed: texts that would be lines, rules without end, zones that lie."""

from random import Random

from tests.adversary.hostile import LINES

EACH = ",".join(map(str, range(60)))
TEXTS = (
    "Planning",
    "a\\, b\\; c\\\\n d\\nBEGIN:VEVENT\\nSUMMARY:Other",
    "=?utf-8?q?Subject=3A_forged?=",
    "Ünï \u202e reversed \u200b \u2028 next",
    "x" * 900,
    "漢字" * 100,
    "<script>alert(1)</script> & ]]>",
    "tab\there, bell\x07, null\x00, escape\x1b[31m",
    "\\",
)
RULES = (
    "",
    "FREQ=WEEKLY;COUNT=5",
    "FREQ=SECONDLY",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    f"FREQ=YEARLY;BYHOUR=1,2,3;BYMINUTE={EACH};BYSECOND={EACH};BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=-1",
    "FREQ=MINUTELY;BYYEARDAY=366;BYDAY=MO;INTERVAL=999999",
    "FREQ=DAILY;COUNT=999999999",
    "FREQ=SOMETIMES",
    "FREQ=DAILY;UNTIL=00000000",
)
ZONES = ("", ";TZID=Europe/Berlin", ";TZID=Lying", ';TZID="../../etc/passwd"', ";TZID=America/New_York")
LYING = (
    "BEGIN:VTIMEZONE\nTZID:{}\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0900\nTZOFFSETTO:+9900\n"
    "RRULE:FREQ=SECONDLY\nEND:STANDARD\nEND:VTIMEZONE\n"
)
STARTS = ("20261120T150000", "20261120T150000Z", "20261120", "00010101T000000", "99991231T235959", "never")
ENDS = (
    "DTEND{zone}:20261120T160000",
    "DTEND:20261120T160000Z",
    "DTEND:20200101T000000Z",
    "DURATION:PT1H",
    "DURATION:P99999999W",
    "DURATION:-PT5H",
    "",
)
MORE = (
    "SUMMARY:Another summary",
    "X-ALT-DESC;FMTTYPE=text/html:<b>Other</b>",
    'X-OWN;A="b;c";É=x:value\x0bwith\x7fcontrols',
    "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-PT5M\nSUMMARY:Alarm\nEND:VALARM",
    "BEGIN:VALARM\nBEGIN:VALARM\nEND:VALARM",
    "END:VEVENT\nBEGIN:VEVENT\nUID:second\nDTSTART:20261120T150000Z",
    "END:VCALENDAR",
    "RECURRENCE-ID:20261120T150000Z",
    "EXDATE;VALUE=DATE:" + ",".join(["20261120"] * 3_000),
    "\n".join(f"ATTENDEE:mailto:p{number}@example.com" for number in range(200)),
    'ATTENDEE;CN="a\\"b\nmailto:x":mailto:not an address',
    "CATEGORIES:a,b,c",
    "folded\n line\n\t:more",
    "ATTACH;ENCODING=BASE64;VALUE=BINARY:" + "QUJD" * 5_000,
)


def uid_of(seed: int) -> str:
    return f"hostile-{seed}"


def calendar_file(seed: int, head: str = "") -> bytes:
    """The hostile calendar file of this number; `head` are lines of the calendar before its event."""
    random = Random(seed)
    zone = random.choice(ZONES)
    text = random.choice((random.choice(TEXTS), random.choice(LINES).replace("\0", "")))
    lines = [
        f"UID:{uid_of(seed)}",
        f"SUMMARY:{random.choice(TEXTS)}",
        f"DESCRIPTION:{text}",
        f"DTSTART{zone}:{random.choice(STARTS) if random.random() < 0.4 else '20261120T150000'}",
        random.choice(ENDS).format(zone=zone),
    ]
    rule = random.choice(RULES) if random.random() < 0.5 else ""
    lines += [f"RRULE:{rule}"] * bool(rule)
    lines += [random.choice(MORE) for _ in range(random.choice((0, 0, 1, 2)))]
    random.shuffle(lines)
    rules = LYING.format("Lying") + LYING.format("Europe/Berlin") if random.random() < 0.4 else ""
    written = "\n".join(filter(None, lines))
    whole = f"BEGIN:VCALENDAR\nVERSION:2.0\n{head}{rules}BEGIN:VEVENT\n{written}\nEND:VEVENT\nEND:VCALENDAR\n"
    raw = whole.replace("\n", random.choice(("\r\n", "\r\n", "\n"))).encode("utf-8", "surrogatepass")
    return raw if random.random() < 0.9 else raw[: random.randrange(len(raw))]

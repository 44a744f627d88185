"""Calendar files and cards are told as a reader would tell them."""

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.files.extract import extract
from postroom_mail.files.extraction import MAX_WHOLE_CHARS, Extraction
from postroom_mail.reading.content_lines import MAX_BYTES
from tests.mail.test_calendar import INVITATION, calendar
from tests.samples import samples


def read(content: bytes, filename: str = "", content_type: str = "") -> Extraction:
    return extract(content_type, filename, content)


def card(*lines: str) -> bytes:
    return "\r\n".join(["BEGIN:VCARD", *lines, "END:VCARD", ""]).encode()


def test_an_invitation_is_told_in_words() -> None:
    text = (
        "Plan, part 2; and more\nWhen: 2026-11-20 10:00 to 11:30 (Europe/Berlin)\n"
        "Repeats: FREQ=WEEKLY;COUNT=4\nWhere: Room 7 second floor\n"
        "Organizer: Ann, Example <ann@postroom.example>\n"
        "Attendees: Bob <bob@postroom.example>, cleo@postroom.example\nAnswer expected: yes\nBring\nthe plan"
    )
    assert read(calendar(INVITATION), "invite.ics", "text/calendar; method=REQUEST") == Extraction(
        "text", text
    )
    assert read(calendar(INVITATION), "", "application/octet-stream").text == text


@samples(
    ("event", "method", "text"),
    [
        ("SUMMARY:Fair\nDTSTART;VALUE=DATE:20261120", "PUBLISH", "Fair\nWhen: 2026-11-20"),
        (
            "SUMMARY:Fair\nDTSTART;VALUE=DATE:20261120\nDTEND;VALUE=DATE:20261123",
            "PUBLISH",
            "Fair\nWhen: 2026-11-20 to 2026-11-22",
        ),
        (
            "SUMMARY:Off\nDTSTART:20261120T080000Z",
            "CANCEL",
            "Off\nWhen: 2026-11-20 08:00 (UTC)\nStatus: cancelled",
        ),
        ("SUMMARY:x\nSTATUS:TENTATIVE", "REQUEST", "x\nStatus: tentative"),
    ],
)
def test_days_and_states_are_told(event: str, method: str, text: str) -> None:
    assert read(calendar(event, method), "a.ics") == Extraction("text", text)


def test_a_calendar_without_appointments_is_given_as_it_is() -> None:
    assert read(b"BEGIN:VCALENDAR\r\nX-A:1\r\nEND:VCALENDAR").text == "BEGIN:VCALENDAR\nX-A:1\nEND:VCALENDAR"


@samples(
    ("lines", "text"),
    [
        (
            (
                "VERSION:4.0",
                "N:Example;Ann;;;",
                "FN:Ann Example",
                "ORG:Postroom;Sales",
                "EMAIL;TYPE=work:ann@postroom.example",
                'TEL;VALUE=uri;TYPE="cell,voice":tel:+49-30-1',
                "ADR;TYPE=home:;;Long Street 1;Berlin;;10115;Germany",
                "NOTE:Calls back\\, always\\nat noon",
                "PHOTO;ENCODING=b:AAAA",
            ),
            "Name: Ann Example\nOrganization: Postroom, Sales\nEmail (work): ann@postroom.example\n"
            "Phone (cell): +49-30-1\nAddress (home): Long Street 1, Berlin, 10115, Germany\n"
            "Note: Calls back, always\nat noon",
        ),
        (("VERSION:2.1", "N:Example;Bob", "TEL;WORK;VOICE:1"), "Name: Bob Example\nPhone (work): 1"),
        (
            (
                "FN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:J=FCrgen =",
                "M=FCller",
                "item1.EMAIL:j@x.example",
            ),
            "Name: Jürgen Müller\nEmail: j@x.example",
        ),
    ],
)
def test_a_card_is_told_line_by_line(lines: tuple[str, ...], text: str) -> None:
    assert read(card(*lines), "a.vcf", "text/vcard") == Extraction("text", text)


def test_several_cards_stand_below_each_other() -> None:
    assert read(card("FN:Ann") + card("FN:Bob")).text == "Name: Ann\n\nName: Bob"


@samples("unit", [b"FN:a\n", b"\n ", b'N;A="', b"=\n", b";", b"ADR:;;;;\n", b"BEGIN:VCARD\n"])
def test_long_hostile_cards_are_read_in_one_pass(unit: bytes) -> None:
    found = read(b"BEGIN:VCARD\nFN;QUOTED-PRINTABLE:a\n" + unit * (2 * MAX_BYTES // len(unit)))
    assert len(found.text or "") <= MAX_WHOLE_CHARS


@given(st.lists(st.one_of(st.text(max_size=40), st.sampled_from(["N:a;b", "END:VCARD", "TEL;WORK:1", "="]))))
def test_any_card_gives_a_text(lines: list[str]) -> None:
    content = "\n".join(["BEGIN:VCARD", *lines]).encode("utf-8", "replace")
    assert read(content, "a.vcf", "text/vcard").method in ("text", "unsupported")

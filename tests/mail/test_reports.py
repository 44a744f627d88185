"""Reports about a domain: those of the RFCs are read, however they are packed; hostile ones are refused."""

import contextlib
import gzip
import io
import struct
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports import dmarc_report
from postroom_mail.reports.dmarc_report import AggregateReport, AggregateRow, read_aggregate
from postroom_mail.reports.domain_report import find_report
from postroom_mail.reports.tls_report import TlsReport, read_tls
from postroom_mail.reports.unpack import MAX_BYTES, BadReport, unpack
from tests.samples import samples

FOLDER = Path(__file__).parent / "samples" / "reports"
AGGREGATE = (FOLDER / "aggregate.xml").read_bytes()
TLS = (FOLDER / "tls.json").read_bytes()
READ = AggregateReport(
    "Sample Reporter",
    "3v98abbp8ya9n3va8yr8oa3ya",
    "example.com",
    1_793_491_200_000,
    1_793_577_599_000,
    (
        AggregateRow("192.0.2.123", 123, "pass", "pass", "fail"),
        AggregateRow("2001:db8::25", 4, "quarantine", "fail", "fail"),
    ),
)


def zipped(content: bytes, *others: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for number, each in enumerate((content, *others)):
            archive.writestr(f"{number}.xml", each)
    return packed.getvalue()


def test_the_example_of_rfc_9990_is_read() -> None:
    assert read_aggregate(AGGREGATE) == READ


def test_the_example_of_rfc_8460_is_read() -> None:
    found = read_tls(TLS)
    assert (found.reporter, found.begins_at) == ("Company-X", 1_793_491_200_000)
    assert [(row.domain, row.policy, row.result, row.count) for row in found.rows] == [
        ("company-y.example", "sts", "success", 5326),
        ("company-y.example", "sts", "certificate-expired", 100),
        ("company-y.example", "sts", "starttls-not-supported", 200),
        ("company-y.example", "sts", "validation-failure", 3),
    ]


@samples(
    "packed",
    [
        AGGREGATE,
        gzip.compress(AGGREGATE),
        zipped(AGGREGATE),
        zipped(AGGREGATE, method=zipfile.ZIP_STORED),
        b"\xef\xbb\xbf\r\n" + AGGREGATE,
    ],
)
def test_a_report_is_read_from_whatever_it_is_packed_in(packed: bytes) -> None:
    mail = EmailMessage()
    mail["Subject"] = "Report domain: example.com"
    mail.set_content("An aggregate report.")
    mail.add_attachment(b"not this one", maintype="application", subtype="octet-stream")
    mail.add_attachment(packed, maintype="application", subtype="octet-stream", filename="report")
    assert find_report(parse_mail(mail.as_bytes())) == READ


def test_a_mail_that_is_nothing_but_the_file_is_read() -> None:
    mail = EmailMessage()
    mail.set_content(gzip.compress(TLS), maintype="application", subtype="tlsrpt+gzip", filename="r.json.gz")
    assert isinstance(find_report(parse_mail(mail.as_bytes())), TlsReport)


def test_what_is_no_report_is_none() -> None:
    assert find_report(parse_mail(b"Subject: Hi\r\n\r\nHello\r\n")) is None
    failure = (
        b"Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\r\nText\r\n"
        b"--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: auth-failure\r\n--b--\r\n"
    )
    assert find_report(parse_mail(failure)) is None


def bomb_header() -> bytes:
    """A gzip member that claims to be small, and is not."""
    packed = bytearray(gzip.compress(b"<a>" * (MAX_BYTES // 3 + 100)))
    packed[-4:] = struct.pack("<I", 5)
    return bytes(packed)


ENTITIES = (
    b"""<?xml version="1.0"?><!DOCTYPE feedback [<!ENTITY a "aaaaaaaaaa">%s]><feedback>&z;</feedback>"""
    % (b"".join(b'<!ENTITY %c "%s">' % (number, b"&%c;" % (number - 1) * 10) for number in range(98, 123)))
)


@samples(
    "hostile",
    [
        bomb_header(),
        gzip.compress(b"\0" * (MAX_BYTES + 1)),
        zipped(b"\0" * (MAX_BYTES + 1)),
        zipped(AGGREGATE, AGGREGATE),
        zipped(AGGREGATE, method=zipfile.ZIP_BZIP2),
        zipped(AGGREGATE, method=zipfile.ZIP_LZMA),
        zipped(AGGREGATE)[:-30],
        gzip.compress(AGGREGATE)[:40],
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"",
        b"<",
        ENTITIES,
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><feedback>&x;</feedback>',
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><feedback/>',
        b"<a>" * 100_000,
        b'<?xml version="1.0" encoding="no-such"?><feedback/>',
        AGGREGATE.replace(b"<domain>example.com</domain>", b"", 1),
        AGGREGATE.replace(b"1793491200", "١٧٩٣٤٩١٢٠٠".encode()),
        AGGREGATE.replace(b"1793577599", b"9" * 5000),
    ],
)
def test_what_is_hostile_is_refused(hostile: bytes) -> None:
    with pytest.raises(BadReport):
        read_aggregate(unpack(hostile))


@samples(
    "hostile",
    [
        b"{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        TLS.replace(b"5326", b"1" + b"0" * 400),
        TLS.replace(b"5326", b"-1"),
        TLS.replace(b"2026-11-01T00:00:00Z", b"yesterday"),
        TLS.replace(b"2026-11-01T00:00:00Z", b"2027-11-01T00:00:00Z"),
    ],
)
def test_a_hostile_report_about_tls_is_refused(hostile: bytes) -> None:
    with pytest.raises(BadReport):
        read_tls(hostile)


def test_more_elements_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmarc_report, "MAX_ELEMENTS", 1_000)
    with pytest.raises(BadReport, match="too many elements"):
        read_aggregate(b"<feedback>" + b"<a/>" * 1_001 + b"</feedback>")


def test_rows_that_say_nothing_are_left_out_and_too_many_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for old, new in (
        (b"192.0.2.123", b"evil<b/>"),
        (b">123<", b">-1<"),
        (b">123<", b">0<"),
        (b">123<", b"> <"),
    ):
        assert read_aggregate(AGGREGATE.replace(old, new)).rows == READ.rows[1:]
    start, end = AGGREGATE.index(b"  <record>"), AGGREGATE.index(b"</record>") + len(b"</record>")
    many = AGGREGATE[:start] + AGGREGATE[start:end] * 101 + AGGREGATE[end:]
    assert len(read_aggregate(many).rows) > 100
    monkeypatch.setattr(dmarc_report, "MAX_ROWS", 100)
    assert len(read_aggregate(many).rows) == 100


def read_or_refuse(content: bytes) -> None:
    for read in (read_aggregate, read_tls):
        with contextlib.suppress(BadReport):
            read(unpack(content))


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: f"<feedback>{text}".encode()))
def test_any_bytes_are_a_report_or_refused(content: bytes) -> None:
    read_or_refuse(content)


@given(
    st.sampled_from([AGGREGATE, TLS, gzip.compress(AGGREGATE), zipped(AGGREGATE)]),
    st.integers(0, 3000),
    st.binary(max_size=5),
)
def test_a_damaged_report_is_read_or_refused(content: bytes, position: int, damage: bytes) -> None:
    at = position % len(content)
    read_or_refuse(content[:at] + damage + content[at + len(damage) :])

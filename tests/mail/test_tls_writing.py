"""Reports about TLS as they are written: what the reader of reports, and the RFC, expect (RFC 8460)."""

import gzip
import json

from hypothesis import given
from hypothesis import strategies as st

from postroom.clock import DAY
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports.domain_report import find_report
from postroom_mail.reports.tls_report import TlsReport, TlsRow
from postroom_mail.reports.tls_report_writing import (
    FailureDetail,
    PolicyResult,
    ReportedPolicy,
    Summary,
    lane_of,
    mailbox_of,
    read_addresses,
    write_mail,
    write_report,
)

DAY_NUMBER = 20_000
POLICY = ReportedPolicy(
    "sts", "there.example", ("version: STSv1", "mode: testing"), ("*.mail.there.example",)
)
FAILURE = FailureDetail(
    "certificate-expired", "mx1.mail.there.example", "192.0.2.1", 100, "it has expired", "198.51.100.7"
)


def written() -> bytes:
    return write_report(
        "here.example", "tlr_1", DAY_NUMBER, [PolicyResult(POLICY, Summary(5326, 100), (FAILURE,))]
    )


def test_the_report_has_the_fields_of_the_rfc() -> None:
    """Section 4.4, and the example of appendix B."""
    said = json.loads(gzip.decompress(written()))
    assert said == {
        "organization-name": "here.example",
        "date-range": {"start-datetime": "2024-10-04T00:00:00Z", "end-datetime": "2024-10-04T23:59:59Z"},
        "contact-info": "mailto:postmaster@here.example",
        "report-id": "tlr_1",
        "policies": [
            {
                "policy": {
                    "policy-type": "sts",
                    "policy-string": ["version: STSv1", "mode: testing"],
                    "policy-domain": "there.example",
                    "mx-host": ["*.mail.there.example"],
                },
                "summary": {"total-successful-session-count": 5326, "total-failure-session-count": 100},
                "failure-details": [
                    {
                        "result-type": "certificate-expired",
                        "receiving-mx-hostname": "mx1.mail.there.example",
                        "receiving-ip": "192.0.2.1",
                        "sending-mta-ip": "198.51.100.7",
                        "failed-session-count": 100,
                        "failure-reason-code": "it has expired",
                    }
                ],
            }
        ],
    }


def test_the_mail_is_read_by_the_reader_of_reports() -> None:
    raw = write_mail(
        "here.example", "there.example", "no@here.example", "t@there.example", "tlr_1", DAY_NUMBER, written()
    )
    head = raw.partition(b"\r\n\r\n")[0]
    for field in (
        b"TLS-Report-Domain: there.example",
        b"TLS-Report-Submitter: here.example",
        b"Subject: Report Domain: there.example Submitter: here.example Report-ID: <tlr_1@here.example>",
        b'report-type="tlsrpt"',
        b"Content-Type: multipart/report",
    ):
        assert field in head, head
    assert b"Content-Type: application/tlsrpt+gzip" in raw
    begin, end = DAY_NUMBER * DAY // 1000, (DAY_NUMBER + 1) * DAY // 1000 - 1
    name = f"here.example!there.example!{begin}!{end}!tlr_1.json.gz"
    assert name.encode() in raw
    assert raw.count(b"\n") == raw.count(b"\r\n")
    report = find_report(parse_mail(raw))
    assert isinstance(report, TlsReport)
    assert report.rows == (
        TlsRow("there.example", "sts", "success", 5326),
        TlsRow("there.example", "sts", "certificate-expired", 100),
    )


def test_addresses_are_those_of_the_one_record() -> None:
    """Section 3.1: its examples, and what is no record."""
    assert read_addresses([b"v=TLSRPTv1;rua=mailto:reports@example.com"]) == ["mailto:reports@example.com"]
    https = b"v=TLSRPTv1; rua=https://reporting.example.com/v1/tlsrpt"
    assert read_addresses([https, b"other"]) == ["https://reporting.example.com/v1/tlsrpt"]
    both = read_addresses([https + b",mailto:a@example.com"])
    assert both == ["https://reporting.example.com/v1/tlsrpt", "mailto:a@example.com"]
    for texts in ([], [https, https], [b"v=TLSRPTv2; rua=mailto:a@b.example"], [b"v=TLSRPTv1; rua=ftp://a/"]):
        assert read_addresses(texts) == []
    assert len(read_addresses([b"v=TLSRPTv1; rua=" + b",".join([b"mailto:a@b.example"] * 20)])) == 3


def test_what_is_no_plain_address_gets_nothing() -> None:
    assert mailbox_of("mailto:tls%2Drpt@b.example?subject=x") == "tls-rpt@b.example"
    for address in (
        "mailto:a@b@c.example",
        "mailto:a%0d%0aBcc:x@b.example",
        "mailto:a%20b@c.example",
        "mailto:<a@b.example>",
        "mailto:@b.example",
        "mailto:",
        "http://b.example/",
        "https://",
        "https://[::1",
        "https://b.example/" + "x" * 500,
    ):
        assert lane_of(address) == "", address
    assert lane_of("https://B.example:8443/x") == "b.example"


@given(st.binary(max_size=300))
def test_any_record_gives_addresses_that_something_can_be_sent_to(text: bytes) -> None:
    for address in read_addresses([b"v=TLSRPTv1; rua=" + text]):
        assert lane_of(address)

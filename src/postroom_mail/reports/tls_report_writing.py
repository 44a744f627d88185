"""Writes a TLS report (RFC 8460 sections 4.4 and 5.3), and reads where a domain wants it sent."""

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from postroom_mail.authentication.tags import readable_tags
from postroom_mail.reports.tls_report import ReportedSpan

DAY_SECONDS = 24 * 60 * 60
MOST_ADDRESSES = 3
ADDRESS_CHARACTERS = 500
MEDIA_TYPE = "application/tlsrpt+gzip"
_UNSAFE = frozenset('<>()[]\\,;:"')


class ReportedPolicy(Struct, frozen=True, rename="kebab", omit_defaults=True):
    policy_type: str
    policy_domain: str
    policy_string: tuple[str, ...] = ()
    mx_host: tuple[str, ...] = ()


class Summary(Struct, frozen=True, rename="kebab"):
    total_successful_session_count: int
    total_failure_session_count: int


class FailureDetail(Struct, frozen=True, rename="kebab", omit_defaults=True):
    result_type: str
    receiving_mx_hostname: str
    receiving_ip: str
    failed_session_count: int
    failure_reason_code: str
    sending_mta_ip: str = ""


class PolicyResult(Struct, frozen=True, rename="kebab"):
    policy: ReportedPolicy
    summary: Summary
    failure_details: tuple[FailureDetail, ...]


class _WrittenReport(Struct, frozen=True, rename="kebab"):
    organization_name: str
    date_range: ReportedSpan
    contact_info: str
    report_id: str
    policies: tuple[PolicyResult, ...]


def write_report(own_domain: str, report_id: str, day: int, policies: Sequence[PolicyResult]) -> bytes:
    """Returns gzip."""
    span = ReportedSpan(_moment(day * DAY_SECONDS), _moment((day + 1) * DAY_SECONDS - 1))
    contact = f"mailto:postmaster@{own_domain}"
    document = _WrittenReport(own_domain, span, contact, report_id, tuple(policies))
    return gzip.compress(msgspec.json.encode(document), mtime=0)


def write_mail(
    own_domain: str, domain: str, sender: str, recipient: str, report_id: str, day: int, content: bytes
) -> bytes:
    """Compose the report, unsigned (section 5.3)."""
    from email.mime.application import MIMEApplication  # late: a start needs none of it
    from email.mime.multipart import MIMEMultipart
    from email.mime.text import MIMEText
    from email.policy import SMTP

    mail = MIMEMultipart("report")
    mail.set_param("report-type", "tlsrpt")
    mail["From"] = sender
    mail["To"] = recipient
    mail["Date"] = format_datetime(datetime.fromtimestamp((day + 1) * DAY_SECONDS, UTC))
    mail["Subject"] = f"Report Domain: {domain} Submitter: {own_domain} Report-ID: <{report_id}@{own_domain}>"
    mail["Message-ID"] = f"<{report_id}@{own_domain}>"
    mail["TLS-Report-Domain"] = domain
    mail["TLS-Report-Submitter"] = own_domain
    mail["TLS-Required"] = "No"  # RFC 8689: it may report that TLS fails
    mail["Auto-Submitted"] = "auto-generated"
    text = f"This is an aggregate TLS report from {own_domain} about {domain} (RFC 8460).\n"
    mail.attach(MIMEText(text, "plain", "us-ascii"))
    begin, end = day * DAY_SECONDS, (day + 1) * DAY_SECONDS - 1
    part = MIMEApplication(content, "tlsrpt+gzip")
    name = f"{own_domain}!{domain}!{begin}!{end}!{report_id}.json.gz"
    part.add_header("Content-Disposition", "attachment", filename=name)
    mail.attach(part)
    return mail.as_bytes(policy=SMTP.clone(max_line_length=200))


def read_addresses(texts: Sequence[bytes]) -> list[str]:
    """Return the first usable addresses of the only valid record (section 3)."""
    found = [text for text in texts if text.startswith(b"v=TLSRPTv1")]
    tags = readable_tags(found[0]) if len(found) == 1 else {}
    if tags.get("v") != "TLSRPTv1":
        return []
    wanted = [each.strip() for each in tags.get("rua", "").split(",")]
    return [each for each in wanted if lane_of(each)][:MOST_ADDRESSES]


def lane_of(address: str) -> str:
    """Return the host that receives it; "" if nothing can be sent there."""
    if len(address) > ADDRESS_CHARACTERS or not address.isascii() or not address.isprintable():
        return ""
    if mailbox := mailbox_of(address):
        return mailbox.rpartition("@")[2].lower()
    try:
        parts = urlsplit(address)
        return parts.hostname or "" if parts.scheme == "https" else ""
    except ValueError:
        return ""


def mailbox_of(address: str) -> str:
    """Return the address of a mailto: URI; "" for others, and for anything but a plain address."""
    scheme, _, rest = address.partition(":")
    if scheme.lower() != "mailto":
        return ""
    mailbox = unquote(rest.partition("?")[0])
    is_plain = mailbox.isascii() and mailbox.isprintable() and not _UNSAFE & set(mailbox)
    local, _, domain = mailbox.rpartition("@")
    is_whole = bool(local) and bool(domain) and "@" not in local and " " not in mailbox
    return mailbox if is_plain and is_whole and len(mailbox) <= 254 else ""


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

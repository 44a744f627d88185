"""Finds the report in the files of a mail."""

from postroom.mail.parse import ParsedMail
from postroom.mail.reports.dmarc import AggregateReport, read_aggregate
from postroom.mail.reports.tls import TlsReport, read_tls
from postroom.mail.reports.unpack import BadReport, unpack

MAX_FILES = 5


def find_report(mail: ParsedMail) -> AggregateReport | TlsReport | None:
    """None for anything else: a failure report, a personal mail, damage."""
    for file in mail.attachments[:MAX_FILES]:
        try:
            document = unpack(file.content)
            return read_tls(document) if document.startswith(b"{") else read_aggregate(document)
        except BadReport:
            continue
    return None

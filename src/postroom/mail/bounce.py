"""The names of `postroom.mail.bounces` that the rest of the server uses."""

from postroom.mail.bounces.read import may_be_report, read_report, read_returned
from postroom.mail.bounces.reasons import is_about_address, is_hard, reply_code
from postroom.mail.bounces.report import RecipientReport, Report

__all__ = [
    "RecipientReport",
    "Report",
    "is_about_address",
    "is_hard",
    "may_be_report",
    "read_report",
    "read_returned",
    "reply_code",
]

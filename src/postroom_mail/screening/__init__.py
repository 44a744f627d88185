"""Signals against an email: named rules, each with its excerpt, and the resulting verdict."""

from postroom_mail.screening.examine import Findings, Subject, examine, examine_sender
from postroom_mail.screening.rules import SIGNAL_RULES, RaisedSignal, SignalRule, Verdict

__all__ = [
    "SIGNAL_RULES",
    "Findings",
    "RaisedSignal",
    "SignalRule",
    "Subject",
    "Verdict",
    "examine",
    "examine_sender",
]

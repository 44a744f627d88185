"""Signals against a mail: named rules, each with its excerpt, and the resulting verdict."""

from postroom.mail.signals.examine import Findings, Subject, examine, examine_sender
from postroom.mail.signals.scoring import SIGNAL_RULES, RaisedSignal, SignalRule, Verdict

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

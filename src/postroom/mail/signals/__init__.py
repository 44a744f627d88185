"""What speaks against a mail: named rules, each with its excerpt, and the verdict they add up to."""

from postroom.mail.signals.examine import Findings, Subject, examine, examine_sender
from postroom.mail.signals.rules import RULES, RaisedSignal, Rule, Verdict

__all__ = [
    "RULES",
    "Findings",
    "RaisedSignal",
    "Rule",
    "Subject",
    "Verdict",
    "examine",
    "examine_sender",
]

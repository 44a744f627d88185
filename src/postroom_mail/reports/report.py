"""What a report says about an email we sent: its kind, and each recipient's result in the server's words."""

from typing import Literal

from msgspec import Struct

from postroom_mail.reports import reasons
from postroom_mail.reports.reasons import Fault

ADDRESS_LIMIT = 320
RECIPIENTS_LIMIT = 100

Kind = Literal["bounce", "complaint", "delay", "other"]


class RecipientReport(Struct, frozen=True):
    """`original_recipient` is the address as we wrote it, if a server on the way has changed it.

    `final_recipient` is "" if the report names nobody: then only its return path shows whom it is about.
    """

    final_recipient: str
    action: str = ""
    status: str = ""
    diagnostic: str = ""
    original_recipient: str | None = None

    @property
    def is_failed(self) -> bool:
        return self.action == "failed"

    @property
    def is_hard(self) -> bool:
        return reasons.is_hard(self.status, self.diagnostic)

    @property
    def fault(self) -> Fault:
        """Return whose fault it is that the email did not arrive."""
        code = reasons.reply_code(self.diagnostic)
        return reasons.fault_of(code, self.status or None, self.diagnostic)

    @property
    def last_word(self) -> str:
        return self.diagnostic or self.status or self.action


class Report(Struct, frozen=True):
    """`other` is neither good nor bad: delivered, relayed, expanded, an automatic answer.

    `original` is the email inside a complaint, or its header, byte for byte: its DKIM signature shows whether
    it is ours. `return_paths` are the envelope senders that the report names for that email.
    """

    kind: Kind
    recipients: tuple[RecipientReport, ...]
    original_message_id: str | None
    feedback_type: str | None = None
    original_mail_from: str | None = None
    original: bytes = b""
    original_has_body: bool = False
    return_paths: tuple[str, ...] = ()


def clean_address(value: str) -> str:
    return value.strip().strip("<>\"'").strip()[:ADDRESS_LIMIT]


def typed_value(value: str) -> str:
    """Return `rfc822; user@example.org` and `smtp; 550 no` without the type before the semicolon."""
    kind, semicolon, rest = value.partition(";")
    return rest.strip() if semicolon and " " not in kind.strip() else value.strip()


def kind_of(recipients: tuple[RecipientReport, ...]) -> Kind:
    actions = {recipient.action for recipient in recipients}
    if "failed" in actions:
        return "bounce"
    return "delay" if "delayed" in actions else "other"

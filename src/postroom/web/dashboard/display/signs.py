"""The state of a message in words for people; and its text with suspicious passages marked."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct

MARKED_CHARACTERS = 200_000  # a passage further down is quoted below the text only
# What an excerpt shows as one space.
_GAP = "[\\s\\x00-\\x1f\\u00ad\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\ufeff]+"


class Sign(Struct, frozen=True):
    text: str
    kind: str = ""
    title: str = ""


CATEGORIES = {
    "personal": ("From a person", "", "Not sent by a mailing list or a program."),
    "automated": ("Automated", "", "A program wrote it."),
    "marketing": ("Marketing", "", "Sent to many recipients, with an unsubscribe link."),
    "bounce": ("Bounce", "amber", "A mail server reports a failed delivery."),
}
VERDICTS = {
    "suspicious": Sign("Suspicious", "amber", "Rules warn about this email. Check it before you act on it."),
    "malicious": Sign(
        "Malicious",
        "red",
        "Rules warn strongly about this email. Do not reply to it or follow its links.",
    ),
}
ROLES = {
    "cc": ("Cc", "", "This inbox is in Cc."),
    "bcc": ("Bcc", "", "This inbox is neither in To nor in Cc."),
}
PURPOSES = {"verify": "confirms an address", "signin": "signs in", "unsubscribe": "unsubscribes"}
METHODS = {"REQUEST": "Invitation", "CANCEL": "Cancelled", "REPLY": "Reply to an invitation"}
PREVIEWED = ("application/pdf", "image/jpeg", "image/png", "image/gif", "image/webp")
ANSWERS = {"accepted": "Accept", "tentative": "Maybe", "declined": "Decline"}
UNANSWERED = ("", "needs-action")


HOLDS_OF_WHAT_WENT_ON = ("scheduled", "approved", "released")


def of_message(message: dict[str, Any]) -> list[Sign]:
    """Return the states of a message as sentences."""
    found = of_inbound(message) if message["direction"] == "inbound" else []
    if message.get("imported"):
        title = "A mail client or an import added it. This server did not receive it."
        found.insert(0, Sign("Imported", "amber", title))
    if message.get("captured"):
        found.append(Sign("Captured, not sent", "amber", "POSTROOM_OUTBOUND is capture."))
    if message.get("analysis"):
        found.append(
            Sign("Not analyzed", "amber", "Part of it could not be analyzed. Its texts are complete.")
        )
    if message.get("parseError"):
        found.append(Sign("Damaged", "amber", message["parseError"]))
    return found


def of_outbound(message: dict[str, Any], has_bounced: bool) -> Sign:
    """Return how far a sent email came."""
    hold, status = message.get("hold"), message["status"]
    has_gone_on = status == "failed" and hold and hold["state"] in HOLDS_OF_WHAT_WENT_ON
    if hold and status != "sent" and not has_gone_on:
        kinds = {"held": "amber", "scheduled": "amber", "approved": "green", "released": "green"}
        return Sign(hold["state"], kinds.get(hold["state"], "red"))
    if status == "pending":
        return Sign("sending", "amber")
    if status == "failed":
        return Sign("bounced" if has_bounced else "failed", "red")
    return Sign("captured", "amber") if message.get("captured") else Sign("sent", "green")


def of_inbound(message: dict[str, Any]) -> list[Sign]:
    found = [of_sender(message.get("auth"))]
    if message["newParticipant"]:
        found.append(Sign("New in this thread", "amber", "This sender has not written in it before."))
    if category := CATEGORIES.get(message.get("category") or ("automated" if message["automated"] else "")):
        found.append(Sign(*category))
    found.append(of_automatic_reply(message))
    if message.get("verdict") is None:
        found.append(Sign("Not checked yet", "amber", "The rules have not checked it yet."))
    if role := ROLES.get(message.get("deliveryRole") or ""):
        found.append(Sign(*role))
    if not message.get("attachmentsRead", True):
        found.append(Sign("Attachments are being read", "amber", "Their text appears here when it is ready."))
    return found


def of_automatic_reply(message: dict[str, Any]) -> Sign:
    if message.get("verdict") in VERDICTS:
        return Sign("No automatic reply", "", "Rules warn about this message.")
    if message.get("autoReplyable"):
        return Sign("Automatic reply allowed", "", "Nothing in it rules out an automatic reply.")
    return Sign("No automatic reply", "", "An automatic reply could start a loop.")


def of_sender(auth: dict[str, str] | None) -> Sign:
    if auth is None:
        return Sign("Sender not checked", "", "SPF, DKIM and DMARC were not checked.")
    title = f"SPF {auth['spf']}, DKIM {auth['dkim']}, DMARC {auth['dmarc']}"
    if auth["dmarc"] == "fail":
        return Sign("Sender not authenticated", "red", title)
    if auth["dmarc"] == "pass":
        return Sign(f"From {auth['domain']}", "green", title)
    return Sign("Sender unverified", "amber", title)


def marked(text: str, signals: Sequence[dict[str, Any]]) -> Markup:
    """Underlines each passage quoted by a signal, with the reason as its title."""
    pieces, at = [], 0
    for begin, end, reason in passages(text[:MARKED_CHARACTERS], signals):
        if begin >= at:
            pieces.append(escape(text[at:begin]))
            pieces.append(Markup('<mark title="{}">{}</mark>').format(reason, text[begin:end]))
            at = end
    return Markup("").join([*pieces, escape(text[at:])])


def has_preview(file: dict[str, Any]) -> bool:
    return file["contentType"].partition(";")[0] in PREVIEWED or file["filename"].lower().endswith(".pdf")


def attendees(listed: Iterable[dict[str, Any]]) -> str:
    """Return the attendees, each with the answer, if any."""
    return ", ".join(
        f"{each['name'] or each['address']}"
        + (f" ({each['participationStatus']})" if each["participationStatus"] not in UNANSWERED else "")
        for each in listed
    )


def passages(text: str, signals: Iterable[dict[str, Any]]) -> list[tuple[int, int, str]]:
    found = []
    for signal in signals:
        words = signal["excerpt"].rstrip("…").split()
        place = re.search(_GAP.join(map(re.escape, words)), text) if words else None
        if place is not None:
            found.append((*place.span(), signal["reason"]))
    return sorted(found)

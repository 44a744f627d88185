"""Whether an email is from whom it says, as far as its domain lets us prove it."""

from postroom.mailbox.documents import Document

# DMARC results of mail that its author may have sent: proven, or of a domain without a policy. An error is
# neither: its sender can cause one, with a header too large to be judged or a name server that never answers.
GENUINE = ("pass", "none")


def is_genuine(document: Document) -> bool:
    return document.auth is None or document.auth.dmarc in GENUINE

"""An email to the simulator, and the emails that answer it."""

from msgspec import Struct

from postroom_mail.mime.parse import ParsedMail
from postroom_mail.writing.compose import Draft, DraftAttachment, compose, reply_subject


class Sent(Struct, frozen=True):
    """One email for one character. `reference` makes the ids of the answers, the same at each attempt."""

    mail: ParsedMail
    sender: str
    recipient: str
    reference: str
    at: int

    @property
    def domain(self) -> str:
        return self.recipient.rpartition("@")[2]


class Answer(Struct, frozen=True):
    """An email in return: to the sender's address, or to the return path of the mail."""

    raw: bytes
    mail_from: str
    is_to_return_path: bool = False


class WrittenWords(Struct, frozen=True):
    """The text of a character."""

    name: str
    text: str
    html: str | None = None
    files: tuple[DraftAttachment, ...] = ()
    is_automatic: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    sender: str = ""  # the recipient of the email, unless somebody else answers
    subject: str = ""


def answer(sent: Sent, words: WrittenWords, number: int = 1) -> Answer:
    """Return the answer with this number.

    Each replies to the one before it, the first to the email itself.
    """
    earlier = [message_id(sent, before) for before in range(1, number)]
    chain = [each for each in (*sent.mail.references, sent.mail.message_id, *earlier) if each]
    sender = words.sender or sent.recipient
    draft = Draft(
        from_name=words.name,
        from_address=sender,
        to=(sent.sender,),
        subject=words.subject or reply_subject(sent.mail.subject),
        text=words.text,
        message_id=message_id(sent, number),
        date_at=sent.at,
        html=words.html,
        attachments=words.files,
        in_reply_to=chain[-1] if chain else None,
        references=tuple(chain),
        automated=words.is_automatic,
        headers=dict(words.headers),
    )
    return Answer(compose(draft), "" if words.is_automatic else sender)


def message_id(sent: Sent, number: int) -> str:
    return f"<{sent.reference}.{number}@{sent.domain}>"

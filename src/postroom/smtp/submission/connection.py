"""One mail client that sends: performs the effects of its dialogue, logs it in and sends its emails."""

from postroom import log
from postroom.accounts.permissions import WRITING
from postroom.errors import ApiError
from postroom.net.mail_clients.connection import ClientConnection, ClientContext
from postroom.net.mail_clients.limits import ClientLimits
from postroom.operations.audit_log import REFUSALS, audit_refusal
from postroom.operations.folders import names
from postroom.operations.folders.names import InboxLogin
from postroom.outward.raw_submission.submitted_mail import FinishedMail, send_finished
from postroom.outward.send_stages import SendReceipt
from postroom.processes import pools
from postroom.resources import Resources
from postroom.smtp.backend import Accepted
from postroom.smtp.dialogue import replies
from postroom.smtp.dialogue.effects import (
    AcceptMail,
    AskRecipient,
    BeginMail,
    DropMail,
    HangUp,
    MailAnswered,
    MailContent,
    Send,
    StartTls,
)
from postroom.smtp.limits import SessionLimits, is_transfer_too_slow
from postroom.smtp.submission.dialogue import AskLogin, SubmissionDialogue, SubmissionEffect
from postroom_mail.writing.header_words import DraftError

TOO_MANY_WITH_KEY = b"454 4.7.0 Too many connections with this key\r\n"
MAX_REPLY_CHARACTERS = 450  # a reply line has 512 bytes with code and line end (RFC 5321 section 4.5.3.1.5)
LATER = frozenset({408, 429, 500, 503, 507})


class SubmissionContext(ClientContext, frozen=True, kw_only=True):
    """What every connection of one server shares."""

    resources: Resources
    limits: ClientLimits
    session_limits: SessionLimits


class SubmissionConnection(ClientConnection[SubmissionDialogue]):
    """The asyncio side of a session."""

    too_many = replies.TOO_MANY_CONNECTIONS
    too_slow = replies.COMMAND_TIMEOUT

    def __init__(self, context: SubmissionContext, proxied_address: str | None = None) -> None:
        super().__init__(context, context.limits, proxied_address)
        self._context = context
        self._mail_began_at, self._mail_bytes = self._connected_at, 0
        self._login: InboxLogin | None = None

    def data_received(self, data: bytes) -> None:
        self._mail_bytes += len(data)
        super().data_received(data)

    # Called for every connection

    @property
    def logged_in(self) -> tuple[str, str] | None:
        return None if self._login is None else (self._login.caller.key_id, self._login.inbox.id)

    @property
    def may_end(self) -> bool:
        """Return whether no mail is under way; an email under way checks the key itself."""
        dialogue = self._dialogue
        return dialogue is None or not (dialogue.is_in_data or dialogue.is_asking)

    def _check_silence(self, now: float) -> None:
        limits = self._context.session_limits
        if self._dialogue is not None and self._dialogue.is_in_data:
            if is_transfer_too_slow(limits, now - self._mail_began_at, self._mail_bytes):
                self.hang_up(replies.DATA_TIMEOUT)
        elif now > self._heard_at + limits.command_timeout_seconds:
            self.hang_up(replies.COMMAND_TIMEOUT)

    def _new_dialogue(self, offers_tls: bool, is_private: bool) -> SubmissionDialogue:
        return SubmissionDialogue(self._context.session_limits, offers_tls, is_private)

    def _carry_out(self, effects: list[SubmissionEffect]) -> None:
        dialogue = self._dialogue
        assert dialogue is not None
        while effects:
            following: list[SubmissionEffect] = []
            for effect in effects:
                match effect:
                    case Send(data):
                        self._socket.write(data)
                    case BeginMail():
                        self._mail.begin()
                        self._mail_began_at, self._mail_bytes = self._loop.time(), 0
                    case MailContent(data):
                        self._mail.write(data)
                    case DropMail():
                        self._mail.drop()
                    case HangUp():
                        self._close()
                    case AskRecipient(address):
                        # Whether the recipient is allowed is answered for the whole email, in words.
                        following = dialogue.recipient_answer(Accepted(address))
                    case StartTls():
                        self._start_tls()
                    case AskLogin() | AcceptMail():
                        self._start(self._answer(effect))
            effects = following

    # Questions of the dialogue

    async def _answer(self, question: AskLogin | AcceptMail) -> None:
        """Answer what the dialogue asks.

        An email is sent even if the client has disconnected: a retry gets the answer.
        """
        dialogue = self._dialogue
        assert dialogue is not None
        if isinstance(question, AskLogin):
            effects = dialogue.login_answer(await self._log_in(question))
        else:
            effects = dialogue.mail_answer(await self._send(question))
        self._carry_out(effects)
        self._read_on()

    async def _log_in(self, asked: AskLogin) -> bytes | None:
        refusal = await self._log_in_slowly(asked.name, lambda: self._find_login(asked))
        if self._login is None or self._admit_key(self._login.caller.key_id):
            return refusal
        self._login = None
        return TOO_MANY_WITH_KEY

    async def _find_login(self, asked: AskLogin) -> bytes | None:
        db, now = self._context.resources.db, self._context.resources.now()
        try:
            self._login = await db.read(names.log_in, asked.name, asked.password, WRITING, now)
        except Exception as error:
            return _refusal(error, b"535 5.7.8 ")
        return None

    async def _send(self, question: AcceptMail) -> MailAnswered:
        spool = self._mail.take()
        if spool is None or self._login is None:
            return MailAnswered(replies.STORAGE_FULL, is_accepted=False)
        resources = self._context.resources
        try:
            caller, inbox = self._login
            caller, inbox = await resources.db.read(names.require, caller, inbox.id, WRITING, resources.now())
            content = spool.finish()

            async def send() -> SendReceipt:
                raw = await pools.FILES.run(content.read)
                recipients = tuple(recipient.address for recipient in question.recipients)
                mail = FinishedMail(raw, question.mail_from, recipients)
                return await send_finished(resources, caller, inbox, mail)

            return MailAnswered(_accepted(await self._in_turn(content, send)), True)
        except REFUSALS as error:
            (caller, inbox), now = self._login, resources.now()
            asked = (caller, inbox.scope, "submission", error, self._socket.peer)
            await resources.db.write(audit_refusal, *asked, now)
            return MailAnswered(_refusal(error), is_accepted=False)
        except Exception as error:
            return MailAnswered(_refusal(error), is_accepted=False)
        finally:
            spool.discard()


def _accepted(receipt: SendReceipt) -> bytes:
    if receipt.hold:
        return _line(f"250 2.0.0 held: {', '.join(receipt.hold.reasons)}. It is sent when approved.")
    return _line(f"250 2.0.0 Accepted as {receipt.id}")


def _refusal(error: Exception, code: bytes = b"550 5.7.1 ") -> bytes:
    """Return the reply for an error, with the code and message that the HTTP API gives."""
    if isinstance(error, DraftError):
        return _line(f"550 5.6.0 bad_request: {error}")
    if not isinstance(error, ApiError):
        log.get().exception("a submission failed")
        return replies.TRY_LATER
    said = f"{error.code}: {error.message}"
    return _line(f"450 4.7.1 {said}" if error.status in LATER else f"{code.decode()}{said}")


def _line(text: str) -> bytes:
    printable = "".join(each if " " <= each <= "~" else "?" for each in text[:MAX_REPLY_CHARACTERS])
    return printable.encode("ascii") + b"\r\n"

"""One mail program that sends: performs the effects of its dialogue, logs it in and sends its mails."""

import asyncio
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postroom import log
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import WRITING
from postroom.errors import ApiError
from postroom.mail.writing.header_words import DraftError
from postroom.mailbox.inboxes import Inbox
from postroom.net.client_socket import ClientSocket
from postroom.net.failed_logins import FailedLogins
from postroom.net.spool import Spool
from postroom.operations.folders import names
from postroom.outward.finished.finished_mail import FinishedMail, send_finished
from postroom.outward.finished.refusals import REFUSALS, note_refusal
from postroom.outward.orders import SendReceipt
from postroom.processes import pools
from postroom.resources import Resources
from postroom.smtp.backend import Accepted
from postroom.smtp.connection_limits import LocalConnectionLimits
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

MAX_REPLY_CHARACTERS = 450
LATER = frozenset({408, 429, 500, 503, 507})


@dataclass(frozen=True, slots=True)
class SubmissionContext:
    """What every connection of one server shares; `tasks` are the questions under way."""

    resources: Resources
    limits: SessionLimits
    spool_folder: Path
    tls: ssl.SSLContext
    is_tls_from_the_start: bool
    connections: LocalConnectionLimits
    failures: FailedLogins
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class SubmissionConnection(asyncio.Protocol):
    """The asyncio side of a session."""

    def __init__(self, context: SubmissionContext, proxied_address: str | None = None) -> None:
        self._context = context
        self._proxied_address = proxied_address
        self._loop = asyncio.get_running_loop()
        self._socket = ClientSocket(self, context.limits.tls_handshake_seconds, context.limits.linger_seconds)
        self._dialogue: SubmissionDialogue | None = None
        self._heard_at = self._mail_began_at = self._loop.time()
        self._mail_bytes = 0
        self._closing_since: float | None = None
        self._spool: Spool | None = None
        self._who: tuple[Caller, Inbox] | None = None

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket.made(transport, self._proxied_address)
        refusal = self._context.connections.admit(self, self._socket.peer)
        if refusal is not None:
            self._socket.write(refusal)
            self._close()
        elif self._context.is_tls_from_the_start:
            self._start(self._begin_over_tls())
        else:
            self._begin(offers_tls=True, is_private=self._socket.is_local)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._socket.keeps_for_tls(data, self._dialogue is not None):
            return
        if self._dialogue is not None and self._closing_since is None:
            if self._dialogue.is_asking:
                self._socket.pause_reading()
            self._mail_bytes += len(data)
            self._carry_out(self._dialogue.feed(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket.lost()
        self._context.connections.release(self)
        self._drop_spool()

    # Called by the server

    @property
    def idle_since(self) -> float | None:
        dialogue = self._dialogue
        is_busy = dialogue is not None and (dialogue.is_in_data or dialogue.is_asking)
        return None if is_busy else self._heard_at

    @property
    def logged_in(self) -> tuple[str, str] | None:
        """The key and the inbox."""
        return None if self._who is None else (self._who[0].key_id, self._who[1].id)

    def hang_up(self, farewell: bytes) -> None:
        if self._dialogue is None:
            self.abort()
        elif self._closing_since is None:
            self._carry_out(self._dialogue.hang_up(farewell))

    def abort(self) -> None:
        self._socket.abort()

    def check_time(self, now: float) -> None:
        limits, dialogue = self._context.limits, self._dialogue
        if self._closing_since is not None:
            if now > self._closing_since + limits.linger_seconds:
                self.abort()
        elif dialogue is not None and dialogue.is_in_data:
            if is_transfer_too_slow(limits, now - self._mail_began_at, self._mail_bytes):
                self.hang_up(replies.DATA_TIMEOUT)
        elif now > self._heard_at + limits.command_timeout_seconds:
            self.hang_up(replies.COMMAND_TIMEOUT)

    # Effects of the dialogue

    def _begin(self, offers_tls: bool, is_private: bool) -> None:
        self._dialogue = SubmissionDialogue(self._context.limits, offers_tls, is_private)
        self._carry_out(self._dialogue.greet())

    async def _begin_over_tls(self) -> None:
        first_words = await self._socket.upgrade(self._context.tls)
        if first_words is not None:
            self._begin(offers_tls=False, is_private=True)
            self._hear(first_words)

    def _hear(self, data: bytes) -> None:
        if data and self._dialogue is not None:
            self._carry_out(self._dialogue.feed(data))

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
                        self._begin_mail()
                    case MailContent(data):
                        self._store(data)
                    case DropMail():
                        self._drop_spool()
                    case HangUp():
                        self._close()
                    case AskRecipient(address):
                        # Whether it may be written to is said of the whole mail, in words.
                        following = dialogue.recipient_answer(Accepted(address))
                    case StartTls():
                        self._socket.pause_reading()
                        self._start(self._go_on_over_tls())
                    case AskLogin() | AcceptMail():
                        self._start(self._answer(effect))
            effects = following

    def _close(self) -> None:
        self._closing_since = self._loop.time()
        self._socket.close()

    def _begin_mail(self) -> None:
        self._spool = Spool(self._context.spool_folder, self._context.limits.spool_over_bytes)
        self._mail_began_at, self._mail_bytes = self._loop.time(), 0

    def _store(self, data: bytes) -> None:
        if self._spool is None:
            return
        try:
            self._spool.write(data)
        except OSError:
            log.get().exception("a mail could not be spooled")
            self._drop_spool()

    def _drop_spool(self) -> None:
        if self._spool is not None:
            self._spool.discard()
            self._spool = None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._context.tasks.add(task)
        task.add_done_callback(self._context.tasks.discard)

    # Questions of the dialogue

    async def _answer(self, question: AskLogin | AcceptMail) -> None:
        """A mail is sent also when the program is gone: it may miss the answer, and its next try gets it."""
        dialogue = self._dialogue
        assert dialogue is not None
        if isinstance(question, AskLogin):
            effects = dialogue.login_answer(await self._log_in(question))
        else:
            effects = dialogue.mail_answer(await self._send(question))
        self._carry_out(effects)
        if not dialogue.is_asking:
            self._socket.resume_reading()

    async def _log_in(self, asked: AskLogin) -> bytes | None:
        failures, resources = self._context.failures, self._context.resources
        await asyncio.sleep(failures.wait_seconds(self._socket.peer, asked.name))
        try:
            self._who = await resources.db.read(
                names.log_in, asked.name, asked.password, WRITING, resources.now()
            )
        except Exception as error:
            failures.note(self._socket.peer, asked.name)
            return _refusal(error, b"535 5.7.8 ")
        failures.forget(self._socket.peer, asked.name)
        return None

    async def _send(self, question: AcceptMail) -> MailAnswered:
        spool, self._spool = self._spool, None
        if spool is None or self._who is None:
            return MailAnswered(replies.STORAGE_FULL, is_accepted=False)
        resources = self._context.resources
        try:
            caller, inbox = self._who
            caller, inbox = await resources.db.read(names.require, caller, inbox.id, WRITING, resources.now())
            raw = await pools.FILES.run(spool.finish().read)
            recipients = tuple(recipient.address for recipient in question.recipients)
            mail = FinishedMail(raw, question.mail_from, recipients)
            return MailAnswered(_accepted(await send_finished(resources, caller, inbox, mail)), True)
        except REFUSALS as error:
            who = (*self._who, error, self._socket.peer)
            await resources.db.write(note_refusal, *who, resources.now())
            return MailAnswered(_refusal(error), is_accepted=False)
        except Exception as error:
            return MailAnswered(_refusal(error), is_accepted=False)
        finally:
            spool.discard()

    async def _go_on_over_tls(self) -> None:
        first_words = await self._socket.upgrade(self._context.tls)
        if first_words is not None and self._dialogue is not None:
            self._carry_out(self._dialogue.tls_started())
            self._hear(first_words)


def _accepted(receipt: SendReceipt) -> bytes:
    if receipt.hold:
        return _line(f"250 2.0.0 held: {', '.join(receipt.hold.reasons)}. It leaves when it is approved.")
    return _line(f"250 2.0.0 Accepted as {receipt.id}")


def _refusal(error: Exception, code: bytes = b"550 5.7.1 ") -> bytes:
    """In the words that the interface has for it."""
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

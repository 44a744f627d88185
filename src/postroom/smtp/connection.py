"""One TCP connection: performs the effects of its session, and asks the directory and the intake."""

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field

from postroom import ids, log
from postroom.errors import Unavailable
from postroom.net.listening import peer_of
from postroom.net.spool import IncomingMail, SpooledContent
from postroom.smtp.backend import (
    MailIntake,
    MailLoop,
    MailRefused,
    RecipientDirectory,
    RecipientVerdict,
    Refused,
    StorageFull,
    look_up_failed,
)
from postroom.smtp.connection_limits import ConnectionLimits
from postroom.smtp.dialogue import replies
from postroom.smtp.dialogue.effects import (
    AcceptMail,
    AskRecipient,
    BeginMail,
    DropMail,
    Effect,
    HangUp,
    MailAnswered,
    MailContent,
    MailNotStored,
    MailOutcome,
    MailStored,
    Question,
    Send,
    StartTls,
)
from postroom.smtp.dialogue.protocol import SmtpDialogue
from postroom.smtp.envelope import Envelope
from postroom.smtp.harvesters import Harvesters
from postroom.smtp.limits import SessionLimits, is_transfer_too_slow

_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class ConnectionContext(Struct, frozen=True):
    """What every connection of one server shares; `tasks` are the questions under way."""

    directory: RecipientDirectory
    intake: MailIntake
    limits: SessionLimits
    spool_folder: Path
    tls: ssl.SSLContext | None
    connections: ConnectionLimits
    harvesters: Harvesters
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class SmtpConnection(asyncio.Protocol):
    """The asyncio side of a session."""

    def __init__(self, context: ConnectionContext, proxied_address: str | None = None) -> None:
        self._proxied_address = proxied_address
        self._context = context
        self._limits = context.limits
        self._loop = asyncio.get_running_loop()
        self._session = SmtpDialogue(self._limits, offers_tls=context.tls is not None)
        self._transport: asyncio.Transport | None = None
        self._peer = ""
        self._is_under_tls = False
        self._first_words_over_tls: bytearray | None = None
        self._is_reading = True
        self._is_output_full = False
        self._has_ended_input = False
        self._closing_since: float | None = None
        self._deadline = self._loop.time() + self._limits.command_timeout_seconds
        self._heard_at = self._loop.time()
        self._unsent: list[bytes] = []
        self._mail = IncomingMail(context.spool_folder, context.limits.spool_over_bytes)
        self._mail_began_at = 0.0
        self._mail_bytes = 0

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = self._proxied_address or peer_of(peer)
        admission = self._context.connections.admit(self, self._peer)
        if isinstance(admission, Awaitable):
            self._start(self._await_admission(admission))
        else:
            self._start_session(admission)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._closing_since is not None:
            return
        if self._first_words_over_tls is not None:
            self._first_words_over_tls += data
            return
        if self._session.is_asking:
            # One read ahead shows whether the client keeps in step; more has to wait in its own buffers.
            self._pause_reading()
        elif self._session.is_in_data:
            self._mail_bytes += len(data)
            self._deadline = self._loop.time() + self._limits.data_timeout_seconds
        self._carry_out(self._session.feed(data))

    def eof_received(self) -> bool:
        """Return whether to stay open, if the client has pipelined. TLS has no half-close."""
        self._has_ended_input = True
        stays_open = not self._is_under_tls and self._session.is_asking
        if not stays_open and self._closing_since is None:
            self._closing_since = self._loop.time()
        return stays_open

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._context.connections.release(self)
        # While a hand-over runs, the email belongs to it and is finished without the client.
        if not self._session.is_asking:
            self._mail.drop()

    def pause_writing(self) -> None:
        self._is_output_full = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self._is_output_full = False
        self._resume_reading()

    # Called by the server

    def hang_up(self, farewell: bytes) -> None:
        if self._closing_since is None:
            self._carry_out(self._session.hang_up(farewell))

    @property
    def idle_since(self) -> float | None:
        is_busy = self._session.is_in_data or self._session.is_asking
        return None if is_busy else self._heard_at

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def check_time(self, now: float) -> None:
        if self._closing_since is not None:
            if now > self._closing_since + self._limits.linger_seconds:
                self.abort()
        elif self._session.is_in_data:
            if now > self._deadline or self._is_mail_too_slow(now):
                self.hang_up(replies.DATA_TIMEOUT)
        elif now > self._deadline and not self._session.is_asking:
            self.hang_up(replies.COMMAND_TIMEOUT)

    def _is_mail_too_slow(self, now: float) -> bool:
        return is_transfer_too_slow(self._limits, now - self._mail_began_at, self._mail_bytes)

    # Effects of the session

    async def _await_admission(self, admission: Awaitable[bytes | None]) -> None:
        try:
            self._start_session(await admission)
        except Exception:
            log.get().exception("a connection was not admitted")
            self.abort()

    def _start_session(self, refusal: bytes | None) -> None:
        transport = self._open_transport()
        if transport is None:
            return
        if refusal is None:
            self._loop.call_later(self._limits.greeting_delay_seconds, self._greet)
            return
        self._closing_since = self._loop.time()
        transport.write(refusal)
        transport.close()

    def _greet(self) -> None:
        if self._transport is not None and self._closing_since is None:
            self._carry_out(self._session.greet())

    def _carry_out(self, effects: list[Effect]) -> None:
        question = self._perform(effects)
        if isinstance(question, AskRecipient):
            self._answer_recipient(question)
        elif question is not None:
            self._start(self._answer(self._resolve(question)))

    def _answer_recipient(self, question: AskRecipient) -> None:
        """Uses no task if the directory answers at once: the task would cost more than the look-up."""
        verdict = self._check_recipient(question.address)
        if isinstance(verdict, Awaitable) or verdict is Refused.UNKNOWN:
            self._start(self._answer(self._await_verdict(verdict)))
            return
        following = self._perform(self._session.recipient_answer(verdict))
        if following is not None:
            self._start(self._answer(self._resolve(following)))

    def _perform(self, effects: list[Effect]) -> Question | None:
        """Performs every effect but the question, which is always last and is returned."""
        close: HangUp | None = None
        question: Question | None = None
        # A match statement takes seven times as long, and this loop runs for every reply.
        for effect in effects:
            if isinstance(effect, Send):
                self._unsent.append(effect.data)
            elif isinstance(effect, MailContent):
                self._mail.write(effect.data)
            elif isinstance(effect, BeginMail):
                self._begin_mail()
            elif isinstance(effect, DropMail):
                self._mail.drop()
            elif isinstance(effect, HangUp):
                close = effect
            else:
                question = effect
        if not isinstance(
            question, AskRecipient
        ):  # else what was written goes out with the answer that is due
            self._flush()
        if close is not None:
            self._close(close)
        if isinstance(question, StartTls):
            # Bytes from now on are for TLS.
            self._pause_reading()
        return question

    def _flush(self) -> None:
        output, self._unsent = self._unsent, []
        transport = self._open_transport()
        if output and transport is not None:
            self._deadline = self._loop.time() + self._limits.command_timeout_seconds
            transport.write(b"".join(output))

    def _close(self, close: HangUp) -> None:
        self._closing_since = self._loop.time()
        self._mail.drop()
        transport = self._open_transport()
        if transport is None:
            return
        if close.is_expected or self._has_ended_input or not transport.can_write_eof():
            transport.close()
            return
        # Closing with unread input resets the connection, and the client would never read why.
        try:
            transport.write_eof()
        except OSError:
            transport.abort()
        self._resume_reading()

    def _open_transport(self) -> asyncio.Transport | None:
        """Return None once the connection is lost, even before uvloop reports it: a write would raise."""
        is_open = self._transport is not None and not self._transport.is_closing()
        return self._transport if is_open else None

    def _begin_mail(self) -> None:
        self._mail.begin()
        self._mail_bytes = 0
        self._mail_began_at = self._loop.time()

    # Questions of the session

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._context.tasks.add(task)
        task.add_done_callback(self._context.tasks.discard)

    async def _answer(self, answer: Awaitable[list[Effect]]) -> None:
        """Answers until the session waits for the client again."""
        following = self._perform(await answer)
        while following is not None and self._transport is not None:
            # Thousands of pipelined recipients must not keep the other connections waiting.
            await asyncio.sleep(0)
            following = self._perform(await self._resolve(following))
        self._resume_reading()
        if self._has_ended_input:
            self._close(HangUp())

    async def _resolve(self, question: Question) -> list[Effect]:
        match question:
            case AskRecipient(address):
                return await self._await_verdict(self._check_recipient(address))
            case AcceptMail():
                return self._session.mail_answer(await self._hand_over(question))
            case StartTls():
                return await self._start_tls()

    def _check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        if self._context.harvesters.is_put_off(self._peer):
            return Refused.PUT_OFF
        try:
            return self._context.directory.check_recipient(address)
        except Exception as error:
            return look_up_failed(error)

    async def _await_verdict(self, verdict: RecipientVerdict | Awaitable[RecipientVerdict]) -> list[Effect]:
        try:
            answer = await verdict if isinstance(verdict, Awaitable) else verdict
        except Exception as error:
            answer = look_up_failed(error)
        harvesters = self._context.harvesters
        if answer is Refused.UNKNOWN and harvesters.record_unknown(self._peer):
            await harvesters.slow_down()
        return self._session.recipient_answer(answer)

    async def _hand_over(self, mail: AcceptMail) -> MailOutcome:
        """Finishes even when the client is gone: it may miss a 250, but no mail is lost."""
        spool = self._mail.take()
        if spool is None:
            return MailNotStored.STORAGE_FULL
        try:
            envelope = self._envelope(mail, spool.finish())
            await self._context.intake.accept(envelope)
            return MailStored(envelope.id)
        except MailLoop:
            return MailNotStored.LOOPS
        except MailRefused as refused:
            return MailAnswered(refused.args[0], is_accepted=False)
        except Exception as error:
            if isinstance(error, Unavailable) and not _is_storage_full(error):
                log.get().seldom("mail was put off", reason=str(error.__cause__ or error)[:200])
                return MailNotStored.TRY_LATER
            if not _is_storage_full(error):
                log.get().exception("an email was not stored")
                return MailNotStored.TRY_LATER
            log.get().seldom("no space left for mail", reason=str(error.__cause__ or error)[:200])
            return MailNotStored.STORAGE_FULL
        finally:
            spool.discard()

    def _envelope(self, mail: AcceptMail, content: SpooledContent) -> Envelope:
        return Envelope(
            id=ids.trace(),
            peer=self._peer,
            helo=mail.helo,
            tls=mail.tls,
            esmtp=mail.esmtp,
            smtputf8=mail.smtputf8,
            mail_from=mail.mail_from,
            recipients=mail.recipients,
            content=content,
        )

    async def _start_tls(self) -> list[Effect]:
        tls, transport = self._context.tls, self._open_transport()
        if tls is None or transport is None:
            return []
        self._is_under_tls = True
        # The last packet of a handshake may contain the first command, before TLS is reported.
        first_words = self._first_words_over_tls = bytearray()
        try:
            upgraded = await self._loop.start_tls(
                transport,
                self,
                tls,
                server_side=True,
                ssl_handshake_timeout=self._limits.tls_handshake_seconds,
                ssl_shutdown_timeout=self._limits.linger_seconds,
            )
        except OSError:
            upgraded = None
        self._first_words_over_tls = None
        if upgraded is None or upgraded.is_closing():
            # The loop does not always report the loss of a connection whose handshake failed.
            transport.abort()
            self.connection_lost(None)
            return []
        self._transport = upgraded
        self._is_reading = True
        return self._session.tls_started() + self._session.feed(bytes(first_words))

    # Reading, which stops while the client is ahead of us

    def _pause_reading(self) -> None:
        transport = self._open_transport()
        if self._is_reading and transport is not None:
            self._is_reading = False
            transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_reading or self._is_output_full or self._session.is_asking:
            return
        transport = self._open_transport()
        if transport is not None:
            self._is_reading = True
            transport.resume_reading()


def _is_storage_full(error: Exception) -> bool:
    return isinstance(error, StorageFull) or (isinstance(error, OSError) and error.errno in _FULL_DISK)

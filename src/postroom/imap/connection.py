"""One TCP connection: performs the effects of its dialogue, and lets its session answer the questions."""

import asyncio
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postroom import log
from postroom.imap.admission import TOO_MANY, Admissions
from postroom.imap.dialogue.effects import (
    DropAppended,
    Effect,
    EndIdle,
    EndSession,
    Performed,
    PerformRequest,
    UpgradeToTls,
    Write,
)
from postroom.imap.dialogue.limits import ImapLimits
from postroom.imap.dialogue.protocol import ImapDialogue
from postroom.imap.dialogue.reader import MailPiece
from postroom.imap.dialogue.requests import AppendMail, LogIn, Request
from postroom.imap.output import ClientGone
from postroom.imap.reading.fetching import BrokenAnswer
from postroom.imap.session import ImapSession
from postroom.imap.state import ImapState
from postroom.imap.watching import InboxWatch
from postroom.inward.examine import Extractor
from postroom.net.client_socket import ClientSocket
from postroom.net.failed_logins import FailedLogins
from postroom.net.spool import Spool
from postroom.resources import Resources

TOO_SLOW = b"* BYE You took too long to log in.\r\n"
SILENT = b"* BYE You said nothing for too long.\r\n"
NO_ROOM = b"NO [UNAVAILABLE] There is no room for this mail now."
SOMETHING_BROKE = b"NO [SERVERBUG] Something went wrong here. Try again."
TOO_FAST_SECONDS = 1.0
MINUTE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ImapContext:
    """What every connection of one server shares; `tasks` are the questions under way."""

    resources: Resources
    extractor: Extractor
    limits: ImapLimits
    tls: ssl.SSLContext | None
    is_tls_from_the_start: bool
    admissions: Admissions
    failures: FailedLogins
    watch: InboxWatch
    spool_folder: Path
    large_mails: asyncio.Semaphore
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class ImapConnection(asyncio.Protocol):
    """The asyncio side of a session."""

    def __init__(self, context: ImapContext, proxied_address: str | None = None) -> None:
        self._context = context
        self._proxied_address = proxied_address
        self._loop = asyncio.get_running_loop()
        self._socket = ClientSocket(self, context.limits.tls_handshake_seconds, context.limits.linger_seconds)
        self._dialogue: ImapDialogue | None = None
        self.state = ImapState(context.resources, context.extractor, self)
        self._session = ImapSession(self.state)
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._connected_at = self._heard_at = self._loop.time()
        self._closing_since: float | None = None
        self._minute_began = self._connected_at
        self._commands = 0
        self._spool: Spool | None = None

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket.made(transport, self._proxied_address)
        if not self._context.admissions.admit(self, self._socket.peer):
            self._socket.write(TOO_MANY)
            self._close()
        elif self._context.is_tls_from_the_start:
            self._start(self._begin_over_tls())
        else:
            self._begin(offers_tls=self._context.tls is not None, is_private=self._socket.is_local)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._socket.keeps_for_tls(data, self._dialogue is not None):
            return
        if self._dialogue is not None and self._closing_since is None:
            if self._dialogue.is_asking and not self._dialogue.is_idling:
                # One read ahead; more has to wait in the client's own buffers.
                self._socket.pause_reading()
            self._carry_out(self._dialogue.feed(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket.lost()
        self._drop_mail()
        self._context.admissions.release(self)
        self._context.watch.leave(self.state)
        self._has_room.set()
        self.state.idle_ended.set()

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    # Called by the session

    def write(self, data: bytes) -> None:
        if not self._socket.is_open:
            raise ClientGone
        self._socket.write(data)

    async def drain(self) -> None:
        if not self._socket.is_open:
            raise ClientGone
        try:
            async with asyncio.timeout(self._context.limits.write_seconds):
                await self._has_room.wait()
        except TimeoutError:
            raise ClientGone from None

    # Called by the server

    def hang_up(self, farewell: bytes) -> None:
        if self._dialogue is None:
            self.abort()
        elif self._closing_since is None:
            self._carry_out(self._dialogue.end(farewell))

    def abort(self) -> None:
        self._socket.abort()

    def check_time(self, now: float) -> None:
        limits = self._context.limits
        if self._closing_since is not None:
            if now > self._closing_since + limits.linger_seconds:
                self.abort()
        elif self.state.inbox is None:
            if now > self._connected_at + limits.login_seconds:
                self.hang_up(TOO_SLOW)
        elif now > self._heard_at + limits.idle_seconds:
            self.hang_up(SILENT)

    # Effects of the dialogue

    def _begin(self, offers_tls: bool, is_private: bool) -> None:
        self._dialogue = ImapDialogue(self._context.limits, offers_tls, is_private)
        self._carry_out(self._dialogue.greet())

    async def _begin_over_tls(self) -> None:
        first_words = await self._socket.upgrade(self._context.tls)
        if first_words is not None:
            self._begin(offers_tls=False, is_private=True)
            self._hear(first_words)

    def _hear(self, data: bytes) -> None:
        if data and self._dialogue is not None:
            self._carry_out(self._dialogue.feed(data))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Write(data):
                    self._socket.write(data)
                case MailPiece():
                    self._keep(effect)
                case DropAppended():
                    self._drop_mail()
                case PerformRequest(request):
                    self._start(self._perform(request))
                case EndIdle():
                    self.state.idle_ended.set()
                case UpgradeToTls():
                    self._socket.pause_reading()
                    self._start(self._go_on_over_tls())
                case EndSession():
                    self._close()

    def _keep(self, piece: MailPiece) -> None:
        if piece.is_first:
            self._drop_mail()
            self._spool = Spool(self._context.spool_folder, self._context.limits.spool_over_bytes)
        if self._spool is None:
            return
        try:
            self._spool.write(piece.data)
        except OSError:
            log.get().exception("a mail could not be spooled")
            self._drop_mail()

    def _drop_mail(self) -> None:
        if self._spool is not None:
            self._spool.discard()
            self._spool = None

    def _close(self) -> None:
        self._closing_since = self._loop.time()
        self.state.idle_ended.set()
        self._socket.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._context.tasks.add(task)
        task.add_done_callback(self._context.tasks.discard)

    # Questions of the dialogue

    async def _perform(self, request: Request) -> None:
        try:
            await self._keep_pace()
            performed = await self._answer(request)
        except (ClientGone, BrokenAnswer):
            self.abort()
            return
        except Exception:
            log.get().exception("an IMAP command failed")
            performed = Performed(SOMETHING_BROKE, self.state.inbox is not None, self.state.view is not None)
        if self._closing_since is None and self._dialogue is not None:
            self._carry_out(self._dialogue.performed(performed))
            if not self._dialogue.is_asking or self._dialogue.is_idling:
                self._socket.resume_reading()

    async def _append(self, request: AppendMail) -> Performed:
        spool, self._spool = self._spool, None
        if spool is None:
            return Performed(NO_ROOM, True, self.state.view is not None)
        try:
            self.state.mail = mail = spool.finish()
            if mail.size_bytes <= self._context.limits.spool_over_bytes:
                return await self._session.perform(request)
            async with self._context.large_mails:
                return await self._session.perform(request)
        finally:
            self.state.mail = None
            spool.discard()

    async def _answer(self, request: Request) -> Performed:
        if isinstance(request, AppendMail):
            return await self._append(request)
        if not isinstance(request, LogIn):
            return await self._session.perform(request)
        failures = self._context.failures
        await asyncio.sleep(failures.wait_seconds(self._socket.peer, request.name))
        performed = await self._session.perform(request)
        if self.state.inbox is None:
            failures.note(self._socket.peer, request.name)
            return performed
        failures.forget(self._socket.peer, request.name)
        return performed if self._join() else self._refuse_key()

    def _join(self) -> bool:
        caller, _ = self.state.who
        if not self._socket.is_open:
            raise ClientGone
        if not self._context.admissions.admit_key(self, caller.key_id):
            return False
        self._context.watch.join(self.state)
        return True

    def _refuse_key(self) -> Performed:
        self.state.caller = self.state.inbox = None
        return Performed(b"NO [LIMIT] Too many connections with this key.", False, False)

    async def _keep_pace(self) -> None:
        """A client that asks too often in a minute is answered slowly."""
        now = self._loop.time()
        if now > self._minute_began + MINUTE_SECONDS:
            self._minute_began, self._commands = now, 0
        self._commands += 1
        if self._commands > self._context.limits.max_commands_per_minute:
            await asyncio.sleep(TOO_FAST_SECONDS)

    async def _go_on_over_tls(self) -> None:
        first_words = await self._socket.upgrade(self._context.tls)
        if first_words is not None and self._dialogue is not None:
            self._carry_out(self._dialogue.tls_started())
            self._hear(first_words)

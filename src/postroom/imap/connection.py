"""One TCP connection: performs the effects of its dialogue, and lets its session answer the questions."""

import asyncio

from postroom import log
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
from postroom.net.mail_clients.connection import ClientConnection, ClientContext
from postroom.resources import Resources

SILENT = b"* BYE You said nothing for too long.\r\n"
NO_ROOM = b"NO [UNAVAILABLE] There is no room for this mail now."
SOMETHING_BROKE = b"NO [SERVERBUG] Something went wrong here. Try again."
TOO_MANY_WITH_KEY = b"NO [LIMIT] Too many connections with this key."
TOO_FAST_SECONDS = 1.0
MINUTE_SECONDS = 60.0


class ImapContext(ClientContext, frozen=True, kw_only=True):
    """What every connection of one server shares."""

    resources: Resources
    extractor: Extractor
    limits: ImapLimits
    watch: InboxWatch


class ImapConnection(ClientConnection[ImapDialogue]):
    """The asyncio side of a session."""

    too_many = b"* BYE [UNAVAILABLE] Too many connections. Try again later.\r\n"
    too_slow = b"* BYE You took too long to log in.\r\n"

    def __init__(self, context: ImapContext, proxied_address: str | None = None) -> None:
        super().__init__(context, context.limits, proxied_address)
        self._context = context
        self.state = ImapState(context.resources, context.extractor, self)
        self._session = ImapSession(self.state)
        self._minute_began = self._connected_at
        self._commands = 0

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._context.watch.leave(self.state)
        self.state.idle_ended.set()

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

    # Called for every connection

    @property
    def logged_in(self) -> tuple[str, str] | None:
        caller, inbox = self.state.caller, self.state.inbox
        return None if caller is None or inbox is None else (caller.key_id, inbox.id)

    def _check_silence(self, now: float) -> None:
        if now > self._heard_at + self._context.limits.idle_seconds:
            self.hang_up(SILENT)

    def _new_dialogue(self, offers_tls: bool, is_private: bool) -> ImapDialogue:
        return ImapDialogue(self._context.limits, offers_tls, is_private)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Write(data):
                    self._socket.write(data)
                case MailPiece(data, is_first):
                    if is_first:
                        self._mail.begin()
                    self._mail.write(data)
                case DropAppended():
                    self._mail.drop()
                case PerformRequest(request):
                    self._start(self._perform(request))
                case EndIdle():
                    self.state.idle_ended.set()
                case UpgradeToTls():
                    self._start_tls()
                case EndSession():
                    self.state.idle_ended.set()
                    self._close()

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
            self._read_on()

    async def _append(self, request: AppendMail) -> Performed:
        spool = self._mail.take()
        if spool is None:
            return Performed(NO_ROOM, True, self.state.view is not None)
        try:
            self.state.mail = mail = spool.finish()
            return await self._in_turn(mail, lambda: self._session.perform(request))
        finally:
            self.state.mail = None
            spool.discard()

    async def _answer(self, request: Request) -> Performed:
        if isinstance(request, AppendMail):
            return await self._append(request)
        if not isinstance(request, LogIn):
            return await self._session.perform(request)
        performed = await self._log_in_slowly(request.name, lambda: self._session.perform(request))
        if self.state.caller is None:
            return performed
        if not self._admit_key(self.state.caller.key_id):
            self.state.caller = self.state.inbox = None
            return Performed(TOO_MANY_WITH_KEY, False, False)
        self._context.watch.join(self.state)
        return performed

    async def _keep_pace(self) -> None:
        """Slow down a client that asks too often in a minute."""
        now = self._loop.time()
        if now > self._minute_began + MINUTE_SECONDS:
            self._minute_began, self._commands = now, 0
        self._commands += 1
        if self._commands > self._context.limits.max_commands_per_minute:
            await asyncio.sleep(TOO_FAST_SECONDS)

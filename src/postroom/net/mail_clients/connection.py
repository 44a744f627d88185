"""One connection of a mail client, IMAP or submission: its timeouts, its TLS, and the email that it sends."""

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct, field

from postroom.net.client_socket import ClientSocket
from postroom.net.failed_logins import FailedLogins
from postroom.net.mail_clients.admissions import Admissions
from postroom.net.mail_clients.limits import ClientLimits
from postroom.net.spool import IncomingMail, SpooledContent

T = TypeVar("T")


class ClientDialogue(Protocol):
    """The protocol without I/O. `is_asking`: no input is read until a question is answered."""

    @property
    def is_asking(self) -> bool: ...
    def greet(self) -> list[Any]: ...
    def feed(self, data: bytes) -> list[Any]: ...
    def tls_started(self) -> list[Any]: ...
    def hang_up(self, farewell: bytes) -> list[Any]: ...


class ClientContext(Struct, frozen=True, kw_only=True):
    """What every connection of one server shares; `tasks` are the questions under way."""

    tls: ssl.SSLContext | None
    is_tls_from_the_start: bool
    spool_folder: Path
    admissions: "Admissions[ClientConnection[Any]]"
    large_mails: asyncio.Semaphore
    failures: FailedLogins = field(default_factory=FailedLogins)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


D = TypeVar("D", bound=ClientDialogue)


class ClientConnection(asyncio.Protocol, Generic[D]):
    """The asyncio side of a session."""

    too_many: ClassVar[bytes]
    too_slow: ClassVar[bytes]

    def __init__(self, shared: ClientContext, limits: ClientLimits, proxied_address: str | None) -> None:
        self._shared = shared
        self._client_limits = limits
        self._proxied_address = proxied_address
        self._loop = asyncio.get_running_loop()
        self._socket = ClientSocket(self, limits.tls_handshake_seconds, limits.linger_seconds)
        self._dialogue: D | None = None
        self._connected_at = self._heard_at = self._loop.time()
        self._closing_since: float | None = None
        self._full_since: float | None = None
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._mail = IncomingMail(shared.spool_folder, limits.spool_over_bytes)

    @property
    @abstractmethod
    def logged_in(self) -> tuple[str, str] | None:
        """The key and the inbox."""

    @property
    def may_end(self) -> bool:
        """Return whether it may be closed now if its key has ended."""
        return True

    @abstractmethod
    def _new_dialogue(self, offers_tls: bool, is_private: bool) -> D: ...

    @abstractmethod
    def _carry_out(self, effects: list[Any]) -> None: ...

    @abstractmethod
    def _check_silence(self, now: float) -> None:
        """Check how long a logged-in client has been silent."""

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket.made(transport, self._proxied_address)
        if not self._shared.admissions.admit(self, self._socket.peer):
            self._socket.write(self.too_many)
            self._close()
        elif self._shared.is_tls_from_the_start:
            self._start(self._begin_over_tls())
        else:
            self._begin(offers_tls=self._shared.tls is not None, is_private=self._socket.is_local)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._socket.keeps_for_tls(data, self._dialogue is not None):
            return
        if self._dialogue is not None and self._closing_since is None:
            if self._dialogue.is_asking:
                # One read ahead; more has to wait in the client's own buffers.
                self._socket.pause_reading()
            self._carry_out(self._dialogue.feed(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket.lost()
        self._shared.admissions.release(self)
        self._mail.drop()
        self._has_room.set()

    def pause_writing(self) -> None:
        """Pause reading from a client that does not read its answers."""
        self._full_since = self._loop.time()
        self._has_room.clear()
        self._socket.pause_reading()

    def resume_writing(self) -> None:
        self._full_since = None
        self._has_room.set()
        self._read_on()

    # Called by the server

    def hang_up(self, farewell: bytes) -> None:
        if self._dialogue is None:
            self.abort()
        elif self._closing_since is None:
            self._carry_out(self._dialogue.hang_up(farewell))

    def abort(self) -> None:
        self._socket.abort()

    def check_time(self, now: float) -> None:
        limits = self._client_limits
        if self._closing_since is not None:
            if now > self._closing_since + limits.linger_seconds:
                self.abort()
        elif self._full_since is not None and now > self._full_since + limits.write_seconds:
            self.abort()
        elif self.logged_in is not None:
            self._check_silence(now)
        elif now > self._connected_at + limits.login_seconds:
            self.hang_up(self.too_slow)

    # TLS

    def _begin(self, offers_tls: bool, is_private: bool) -> None:
        self._dialogue = self._new_dialogue(offers_tls, is_private)
        self._carry_out(self._dialogue.greet())

    async def _begin_over_tls(self) -> None:
        first_words = await self._socket.upgrade(self._shared.tls)
        if first_words is not None:
            self._begin(offers_tls=False, is_private=True)
            self._receive(first_words)

    async def _go_on_over_tls(self) -> None:
        first_words = await self._socket.upgrade(self._shared.tls)
        if first_words is not None and self._dialogue is not None:
            self._carry_out(self._dialogue.tls_started())
            self._receive(first_words)

    def _receive(self, data: bytes) -> None:
        if data and self._dialogue is not None:
            self._carry_out(self._dialogue.feed(data))

    # What effects and questions need

    def _start_tls(self) -> None:
        self._socket.pause_reading()
        self._start(self._go_on_over_tls())

    def _read_on(self) -> None:
        if self._full_since is None and self._dialogue is not None and not self._dialogue.is_asking:
            self._socket.resume_reading()

    def _close(self) -> None:
        self._closing_since = self._loop.time()
        self._socket.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._shared.tasks.add(task)
        task.add_done_callback(self._shared.tasks.discard)

    async def _in_turn(self, mail: SpooledContent, work: Callable[[], Awaitable[T]]) -> T:
        if mail.size_bytes <= self._client_limits.spool_over_bytes:
            return await work()
        async with self._shared.large_mails:
            return await work()

    async def _log_in_slowly(self, name: str, log_in: Callable[[], Awaitable[T]]) -> T:
        """Log in, with a delay after wrong passwords. Attempts of one peer at one name take turns."""
        failures, peer = self._shared.failures, self._socket.peer
        async with failures.turn(peer, name):
            await asyncio.sleep(failures.wait_seconds(peer, name))
            answer = await log_in()
            if self.logged_in is None:
                failures.record(peer, name)
            else:
                failures.forget(peer, name)
        return answer

    def _admit_key(self, key_id: str) -> bool:
        """Admit a key, but not after the connection is lost: nothing would release its slot."""
        return self._socket.is_open and self._shared.admissions.admit_key(self, key_id)

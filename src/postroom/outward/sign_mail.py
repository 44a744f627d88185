"""Signs outgoing email, which takes milliseconds of a core each: in separate threads, one per core."""

import asyncio
import contextlib
import os
import queue
import threading
from functools import lru_cache

from msgspec import Struct

from postroom.accounts.dkim_keys import DkimKey
from postroom.clock import MINUTE
from postroom_mail.authentication import arc_seal, dkim
from postroom_mail.authentication.arc_seal import SeenResults

# While more wait to be signed, emails go on in groups of this size: delivered side by side, with their
# outcomes share a commit, which costs as much as delivering an email.
GROUP_SIZE = 16
# Recipients at one domain get their email a few at a time: the signature of the first ones is kept for them.
KEPT_SIGNATURES = 500
KEPT_FOR = 5 * MINUTE


class Unsigned(Struct, frozen=True):
    """An email to be signed. The recipients of a message get the same bytes, and so the same signature."""

    message_id: str
    raw: bytes
    domain: str
    keys: tuple[DkimKey, ...]
    now: int
    seen: SeenResults | None = None  # for a redirected email: to be sealed as well


class Signed(Struct, frozen=True):
    """A signature that was made, and of what."""

    domain: str
    keys: tuple[DkimKey, ...]
    raw_bytes: int
    now: int
    fields: bytes

    def is_of(self, mail: Unsigned) -> bool:
        same = self.domain == mail.domain and self.keys == mail.keys and self.raw_bytes == len(mail.raw)
        return same and 0 <= mail.now - self.now < KEPT_FOR


class Signers:
    """More threads than cores would only compete with the event loop and the writer."""

    def __init__(self, threads: int | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Unsigned | None] = queue.SimpleQueue()
        self._made: queue.SimpleQueue[tuple[str, bytes | Exception]] = queue.SimpleQueue()
        self._waiting: dict[str, list[asyncio.Future[bytes]]] = {}  # by message
        self._kept: dict[str, Signed] = {}  # by message
        self._most = threads or os.cpu_count() or 1
        self._threads: list[threading.Thread] = []

    async def sign(self, mail: Unsigned) -> bytes:
        """Return the fields to put before the email.

        Callers that ask for the same message share one signature.
        """
        kept = self._kept.get(mail.message_id)
        if kept is not None and kept.is_of(mail):
            return kept.fields
        made = await self._sign_anew(mail)
        if mail.seen is None:
            self._keep(mail, made)
        return made

    def _keep(self, mail: Unsigned, fields: bytes) -> None:
        if len(self._kept) >= KEPT_SIGNATURES:
            del self._kept[next(iter(self._kept))]
        self._kept[mail.message_id] = Signed(mail.domain, mail.keys, len(mail.raw), mail.now, fields)

    async def _sign_anew(self, mail: Unsigned) -> bytes:
        signature: asyncio.Future[bytes] = self._loop.create_future()
        waiting = self._waiting.setdefault(mail.message_id, [])
        waiting.append(signature)
        if len(waiting) == 1:
            self._jobs.put(mail)
            if len(self._threads) < min(len(self._waiting), self._most):
                self._start_thread()
        try:
            return await signature
        finally:
            del signature, waiting  # an error holds this frame, and would be held by it

    def _start_thread(self) -> None:
        name = f"signer-{len(self._threads)}"
        self._threads.append(threading.Thread(target=self._serve, name=name, daemon=True))
        self._threads[-1].start()

    def close(self) -> None:
        """Waits for signatures being made; emails still waiting are retried when their claim ends."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while mail := self._jobs.get():
            self._made.put((mail.message_id, _signature_or_error(mail)))
            if self._jobs.empty() or self._made.qsize() >= GROUP_SIZE:
                self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                message_id, result = self._made.get_nowait()
                for signature in self._waiting.pop(message_id):
                    _settle(signature, result)


def _settle(signature: "asyncio.Future[bytes]", result: bytes | Exception) -> None:
    if signature.done():
        return  # the caller was cancelled
    if isinstance(result, Exception):
        signature.set_exception(result)
    else:
        signature.set_result(result)


def _signature_or_error(mail: Unsigned) -> bytes | Exception:
    try:
        keys = [(key.selector, _load_key(key.private_key)) for key in mail.keys]
        signatures = dkim.sign(mail.raw, domain=mail.domain, keys=keys, signed_at=mail.now)
        return _seal(mail, keys, signatures + mail.raw) + signatures
    except Exception as error:
        return error
    except BaseException as panic:  # of the library; waiting callers must get it
        return RuntimeError(repr(panic))


def _seal(mail: Unsigned, keys: "list[tuple[str, dkim.PrivateKey]]", signed: bytes) -> bytes:
    """Uses one key, RSA if possible: a chain link has one seal, and few verify Ed25519 there."""
    if mail.seen is None:
        return b""
    selector, key = max(keys, key=lambda each: dkim.algorithm_of(each[1]) == dkim.RSA)
    return arc_seal.seal(
        signed, mail.seen, domain=mail.domain, selector=selector, key=key, sealed_at=mail.now
    )


@lru_cache(maxsize=1000)
def _load_key(pem: bytes) -> "dkim.PrivateKey":
    return dkim.load_key(pem)

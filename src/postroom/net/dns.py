"""The DNS resolver of the server: a limited cache, one query per question at a time, deadlines."""

import asyncio
import concurrent.futures
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from postroom.processes import pools
from postroom_mail.authentication.dane import TlsaRecord
from postroom_mail.authentication.lookup import DnsTemporary
from postroom_mail.authentication.organization import ascii_domain

if TYPE_CHECKING:
    # Loaded with the first query, in a thread: nothing else takes as much of a start.
    import dns.asyncresolver
    import dns.message
    import dns.name
    import dns.nameserver
    import dns.resolver

__all__ = ["DnsTemporary", "Resolver", "ThreadResolver"]

DEFAULT_DEADLINE_SECONDS = 5.0
_MAX_CACHED_ANSWERS = 10_000
_MAX_CACHED_BYTES = 32 * 1024 * 1024
_MAX_OPEN_QUERIES = 256  # each has its own port (RFC 5452 section 9.2)
_MIN_TTL_SECONDS = 5.0  # a TTL of 0 would ask again for every recipient of one email
_MAX_TTL_SECONDS = 3600.0
_MAX_NEGATIVE_TTL_SECONDS = 300.0  # RFC 2308 section 5 suggests hours: a new record is seen sooner
# A zone whose servers are dead costs one deadline per this time, not one per mail.
_FAILURE_TTL_SECONDS = 5.0  # RFC 2308 section 7.1 allows five minutes
_UDP_PAYLOAD_BYTES = 1232  # the least packet of IPv6 less its headers (RFC 8200 section 5); longer: TCP
_OF_CONTAINERS = "127.0.0.11"

_Key = tuple[str, str]  # a name, and the type of its records
_T = TypeVar("_T")


class _Answer(Struct, frozen=True):
    """Records of one name and type. `exists` is false for NXDOMAIN, `failure` says why there is no answer."""

    records: tuple[Any, ...]  # dnspython makes the classes of its records at run time
    ttl_seconds: float
    size_bytes: int = 0
    exists: bool = True
    failure: str | None = None
    is_proved: bool = False  # the resolver says that DNSSEC validates it
    canonical: str = ""  # the name behind all aliases


class _AnswerCache:
    """The answers used last, bounded in number and in bytes."""

    def __init__(self, max_answers: int, max_bytes: int) -> None:
        self._max_answers = max_answers
        self._max_bytes = max_bytes
        self._entries: OrderedDict[_Key, tuple[float, _Answer]] = OrderedDict()
        self._bytes = 0

    def find(self, key: _Key, now: float) -> _Answer | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires_at, answer = entry
        if now >= expires_at:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return answer

    def add(self, key: _Key, answer: _Answer, now: float) -> None:
        self._remove(key)
        self._entries[key] = now + answer.ttl_seconds, answer
        self._bytes += answer.size_bytes
        while len(self._entries) > self._max_answers or self._bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: _Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1].size_bytes


class Resolver:
    """Looks names up for every part of the server, inside one event loop.

    Each lookup returns () if there is no such record, and raises DnsTemporary if there was no answer.
    """

    def __init__(
        self,
        nameservers: Sequence[str] | None = None,
        *,
        deadline_seconds: float = DEFAULT_DEADLINE_SECONDS,
        max_cached_answers: int = _MAX_CACHED_ANSWERS,
        max_cached_bytes: int = _MAX_CACHED_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
        resolv_conf: str = "/etc/resolv.conf",
        trusts_dnssec: bool | None = None,
    ) -> None:
        """Set up the resolver.

        `trusts_dnssec`: its DNSSEC results count; None: only if it is on this machine.
        """
        self._trusts_dnssec = trusts_dnssec
        self._nameservers = nameservers
        self._resolv_conf = resolv_conf
        self._deadline_seconds = deadline_seconds
        self._cache = _AnswerCache(max_cached_answers, max_cached_bytes)
        self._monotonic = monotonic
        self._in_flight: dict[_Key, asyncio.Task[_Answer]] = {}
        self._open_queries = asyncio.Semaphore(_MAX_OPEN_QUERIES)
        self._is_closed = False

    @cached_property
    def _stub(self) -> "dns.asyncresolver.Resolver":
        return _stub(self._nameservers, self._resolv_conf)

    async def txt(self, name: str) -> tuple[bytes, ...]:
        """Return each TXT record with its strings joined."""
        answer = await self._ask(name, "TXT")
        return tuple(b"".join(record.strings) for record in answer.records)

    def cached_txt(self, name: str) -> tuple[bytes, ...] | None:
        """Return the cached TXT records, () for a name without any; None if nothing is known."""
        answer = self._cache.find((name.lower(), "TXT"), self._monotonic())
        if answer is None or answer.failure is not None:
            return None
        return tuple(b"".join(record.strings) for record in answer.records)

    async def mx(self, name: str) -> tuple[tuple[int, str], ...]:
        """Return preference and host, the preferred first. The null MX of RFC 7505 has the host ""."""
        answer = await self._ask(name, "MX")
        return tuple(sorted((record.preference, _host(record.exchange)) for record in answer.records))

    async def nameservers(self, zone: str) -> tuple[str, ...]:
        """Return the names of the servers that hold a zone."""
        answer = await self._ask(zone, "NS")
        return tuple(_host(record.target) for record in answer.records)

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Return IPv4 then IPv6 addresses. If one family fails, the other is still returned."""
        answers = await asyncio.gather(self.ipv4(host), self.ipv6(host), return_exceptions=True)
        found = tuple(ip for answer in answers if isinstance(answer, tuple) for ip in answer)
        for answer in answers:
            if isinstance(answer, BaseException) and not (found and isinstance(answer, DnsTemporary)):
                raise answer
        return found

    async def ipv4(self, host: str) -> tuple[str, ...]:
        answer = await self._ask(host, "A")
        return tuple(record.address for record in answer.records)

    async def ipv6(self, host: str) -> tuple[str, ...]:
        answer = await self._ask(host, "AAAA")
        return tuple(record.address for record in answer.records)

    async def ptr(self, ip: str) -> tuple[str, ...]:
        import dns.exception
        import dns.reversename

        try:
            name = dns.reversename.from_address(ip).to_text(omit_final_dot=True)
        except (dns.exception.DNSException, ValueError):
            return ()
        answer = await self._ask(name, "PTR")
        return tuple(_host(record.target) for record in answer.records)

    async def tlsa(self, name: str) -> tuple[TlsaRecord, ...]:
        answer = await self._ask(name, "TLSA")
        return tuple(TlsaRecord(each.usage, each.selector, each.mtype, each.cert) for each in answer.records)

    async def proves(self, name: str, record_type: str) -> bool:
        """Return whether a trusted resolver validated the answer by DNSSEC, also a negative one."""
        return self.trusts_dnssec and (await self._ask(name, record_type)).is_proved

    async def canonical(self, host: str) -> str:
        """Return the name that has its addresses; itself if it is no alias."""
        answer = await self._ask(host, "A")
        return answer.canonical or host

    @property
    def trusts_dnssec(self) -> bool:
        if self._trusts_dnssec is None:
            servers = [str(getattr(each, "address", each)) for each in self._stub.nameservers]
            return bool(servers) and all(_is_on_this_machine(server) for server in servers)
        return self._trusts_dnssec

    async def exists(self, name: str) -> bool:
        """Return whether the name exists in the DNS with any records: NXDOMAIN holds for every type."""
        return (await self._ask(name, "MX")).exists

    async def close(self) -> None:
        """Cancels queries under way and starts no more: their callers get DnsTemporary."""
        self._is_closed = True
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, name: str, record_type: str) -> _Answer:
        key = name.removesuffix(".").lower(), record_type
        answer = self._cache.find(key, self._monotonic())
        if answer is None:
            answer = await self._join(key)
        if answer.failure is not None:
            raise DnsTemporary(answer.failure)
        return answer

    async def _join(self, key: _Key) -> _Answer:
        """Waits for the query under way for this question, or starts it."""
        task = self._in_flight.get(key)
        if task is None:
            if self._is_closed:
                return _failure("the resolver was closed")
            task = asyncio.create_task(self._query(key))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key))
        # A caller that gives up must not cancel the query of the others. wait(), unlike shield(), also tells
        # the end of the query from the cancellation of the caller.
        await asyncio.wait([task])
        return _failure("the resolver was closed") if task.cancelled() else task.result()

    async def _query(self, key: _Key) -> _Answer:
        if "_stub" not in self.__dict__:
            await pools.ONCE.run(getattr, self, "_stub")
        name = _absolute_name(key[0])
        answer = _NO_SUCH_NAME if name is None else await self._query_servers(name, key[1])
        self._cache.add(key, answer, self._monotonic())
        return answer

    async def _query_servers(self, name: "dns.name.Name", record_type: str) -> _Answer:
        import dns.exception
        import dns.resolver

        try:
            async with asyncio.timeout(self._deadline_seconds), self._open_queries:
                answer = await self._stub.resolve(
                    name,
                    record_type,
                    raise_on_no_answer=False,
                    lifetime=self._deadline_seconds,
                    search=False,
                )
        except dns.resolver.NXDOMAIN as error:
            return _no_such_name(error, name)
        except TimeoutError:
            return _failure(f"no answer for {name} within {self._deadline_seconds} s")
        except (dns.exception.DNSException, OSError, EOFError, ValueError) as error:
            return _failure(f"no answer for {name}: {error}")
        return _answer(answer)


class ThreadResolver:
    """The same resolver and cache for blocking code in a thread. Never call it from the event loop."""

    def __init__(self, resolver: Resolver, loop: asyncio.AbstractEventLoop) -> None:
        self._resolver = resolver
        self._loop = loop

    def txt(self, name: str, timeout_seconds: float) -> tuple[bytes, ...]:
        return self._wait(self._resolver.txt(name), timeout_seconds)

    def mx(self, name: str, timeout_seconds: float) -> tuple[tuple[int, str], ...]:
        return self._wait(self._resolver.mx(name), timeout_seconds)

    def ipv4(self, host: str, timeout_seconds: float) -> tuple[str, ...]:
        return self._wait(self._resolver.ipv4(host), timeout_seconds)

    def ipv6(self, host: str, timeout_seconds: float) -> tuple[str, ...]:
        return self._wait(self._resolver.ipv6(host), timeout_seconds)

    def ptr(self, ip: str, timeout_seconds: float) -> tuple[str, ...]:
        return self._wait(self._resolver.ptr(ip), timeout_seconds)

    def _wait(self, question: Coroutine[Any, Any, _T], timeout_seconds: float) -> _T:
        try:
            future = asyncio.run_coroutine_threadsafe(question, self._loop)
        except RuntimeError as error:
            question.close()
            raise DnsTemporary("the event loop has ended") from error
        try:
            return future.result(timeout_seconds)
        except TimeoutError as error:
            future.cancel()
            raise DnsTemporary(f"no answer within {timeout_seconds:.1f} s") from error
        except concurrent.futures.CancelledError as error:
            raise DnsTemporary("the event loop is ending") from error


_NO_SUCH_NAME = _Answer((), _MAX_NEGATIVE_TTL_SECONDS, exists=False)


def _stub(nameservers: Sequence[str] | None, resolv_conf: str) -> "dns.asyncresolver.Resolver":
    """Return dnspython's resolver without its cache. Without a nameserver every lookup fails as temporary."""
    import dns.asyncresolver
    import dns.flags
    import dns.resolver

    stub = dns.asyncresolver.Resolver(configure=False)
    if nameservers is None:
        try:
            stub.read_resolv_conf(resolv_conf)
        except (dns.resolver.NoResolverConfiguration, OSError, ValueError):
            stub.nameservers = []
    else:
        stub.nameservers = [_nameserver(address) for address in nameservers]
    stub.use_edns(0, 0, _UDP_PAYLOAD_BYTES)
    stub.set_flags(dns.flags.RD | dns.flags.AD)  # AD asks for the validation result (RFC 6840 section 5.7)
    return stub


def _is_on_this_machine(server: str) -> bool:
    """Return whether it is on this machine. A container engine's resolver only looks so: it asks another."""
    return ip_address(server).is_loopback and server != _OF_CONTAINERS


def _nameserver(address: str) -> "dns.nameserver.Do53Nameserver":
    """Parse `host:port`, `[host]:port` or `host`."""
    import dns.nameserver

    host, colon, port = address.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, port = address, "53"
    return dns.nameserver.Do53Nameserver(host.strip("[]"), int(port))


def _absolute_name(name: str) -> "dns.name.Name | None":
    """Return the name label by label, so that no escape is interpreted; None if the DNS cannot hold it."""
    import dns.exception
    import dns.name

    plain = name if name.isascii() else ascii_domain(name)
    if not plain:
        return None
    try:
        return dns.name.Name([label.encode("ascii") for label in plain.split(".")] + [b""])
    except dns.exception.DNSException:
        return None


def _host(name: "dns.name.Name") -> str:
    return name.to_text(omit_final_dot=True).lower().removesuffix(".")


def _answer(answer: "dns.resolver.Answer") -> _Answer:
    is_proved, canonical = _is_proved(answer.response), _host(answer.canonical_name)
    if answer.rrset is None:
        ttl = _clamp(answer.chaining_result.minimum_ttl, _MAX_NEGATIVE_TTL_SECONDS)
        return _Answer((), ttl, is_proved=is_proved, canonical=canonical)
    records = tuple(answer.rrset)
    size = sum(len(record.to_wire() or b"") for record in records)
    ttl = _clamp(answer.chaining_result.minimum_ttl, _MAX_TTL_SECONDS)
    return _Answer(records, ttl, size, is_proved=is_proved, canonical=canonical)


def _is_proved(response: "dns.message.Message") -> bool:
    import dns.flags

    return bool(response.flags & dns.flags.AD)


def _no_such_name(error: "dns.resolver.NXDOMAIN", name: "dns.name.Name") -> _Answer:
    import dns.exception

    response: dns.message.QueryMessage = error.kwargs["responses"][name]
    try:
        ttl = response.resolve_chaining().minimum_ttl
    except dns.exception.DNSException:
        ttl = 0
    proved = _is_proved(response)
    return _Answer((), _clamp(ttl, _MAX_NEGATIVE_TTL_SECONDS), exists=False, is_proved=proved)


def _failure(reason: str) -> _Answer:
    return _Answer((), _FAILURE_TTL_SECONDS, failure=reason)


def _clamp(ttl_seconds: float, longest_seconds: float) -> float:
    return min(max(ttl_seconds, _MIN_TTL_SECONDS), longest_seconds)

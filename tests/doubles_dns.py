"""DNS for tests: a small real server on UDP and TCP of the loopback, and a Lookup straight from a dict."""

import asyncio
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from postroom.net.dns import Resolver
from postroom_mail.authentication.lookup import DnsTemporary

Records = Mapping[tuple[str, str], Sequence[str | bytes]]


class DnsServer:
    """Answers from `records`, a dict of (name, type) to record texts; TXT values are given without quotes.

    `dropped`, `servfail` and `truncated` hold names to mistreat ("*" for all); `delay_seconds` slows every
    answer; names in `proved` are answered as proved by DNSSEC; `queries` counts (name, type) as asked;
    `tcp_queries` counts those that came over TCP.
    """

    def __init__(self, records: Records | None = None, *, ttl_seconds: int = 60) -> None:
        self.records = dict(records or {})
        self.ttl_seconds = ttl_seconds
        self.delay_seconds = 0.0
        self.dropped: set[str] = set()
        self.servfail: set[str] = set()
        self.truncated: set[str] = set()
        self.proved: set[str] = set()
        self.queries: Counter[tuple[str, str]] = Counter()
        self.tcp_queries = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        while True:
            self._udp, _ = await loop.create_datagram_endpoint(
                lambda: _UdpDoor(self), local_addr=("127.0.0.1", 0)
            )
            self._port: int = self._udp.get_extra_info("sockname")[1]
            try:
                self._tcp = await asyncio.start_server(self._serve_tcp, "127.0.0.1", self._port)
            except OSError:
                self._udp.close()
            else:
                return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._udp.close()
        self._tcp.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def receive_datagram(
        self, transport: asyncio.DatagramTransport, data: bytes, peer: tuple[str, int]
    ) -> None:
        async def reply() -> None:
            answer = await self._reply(data, over_tcp=False)
            if answer is not None and not transport.is_closing():
                transport.sendto(answer, peer)

        task = asyncio.create_task(reply())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            answer = await self._reply(await reader.readexactly(length), over_tcp=True)
            if answer is not None:
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(self, data: bytes, *, over_tcp: bool) -> bytes | None:
        try:
            request = dns.message.from_wire(data)
        except dns.exception.DNSException:
            return None
        question = request.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        self.queries[name, dns.rdatatype.to_text(question.rdtype)] += 1
        self.tcp_queries += over_tcp
        await asyncio.sleep(self.delay_seconds)
        if self.dropped & {name, "*"}:
            return None
        response = self._response(request, name)
        if self.truncated & {name, "*"} and not over_tcp:
            response.answer.clear()
            response.flags |= dns.flags.TC
        return response.to_wire(max_size=65_535 if over_tcp else 0)

    def _response(self, request: dns.message.Message, name: str) -> dns.message.Message:
        response = dns.message.make_response(request, recursion_available=True)
        if self.servfail & {name, "*"}:
            response.set_rcode(dns.rcode.SERVFAIL)
            return response
        record_type = request.question[0].rdtype
        if self.proved & {name, "*"} and request.flags & dns.flags.AD:
            response.flags |= dns.flags.AD
        name = self._follow(response, name, record_type)
        texts = self.records.get((name, dns.rdatatype.to_text(record_type)))
        if texts:
            response.answer.append(self._rrset(name, record_type, texts))
        else:
            self._say_nothing_found(response, name)
        return response

    def _follow(self, response: dns.message.Message, name: str, record_type: dns.rdatatype.RdataType) -> str:
        for _ in range(20):
            target = self.records.get((name, "CNAME"))
            if target is None or record_type == dns.rdatatype.CNAME:
                break
            response.answer.append(self._rrset(name, dns.rdatatype.CNAME, target))
            name = str(target[0]).removesuffix(".").lower()
        return name

    def _say_nothing_found(self, response: dns.message.Message, name: str) -> None:
        if not any(known == name or known.endswith("." + name) for known, _ in self.records):
            response.set_rcode(dns.rcode.NXDOMAIN)
        zone = name.rpartition(".")[2] + "."
        soa = f"ns.{zone} hostmaster.{zone} 1 60 60 60 {self.ttl_seconds}"
        response.authority.append(dns.rrset.from_text(zone, self.ttl_seconds, "IN", "SOA", soa))

    def _rrset(
        self, name: str, record_type: dns.rdatatype.RdataType, texts: Sequence[str | bytes]
    ) -> dns.rrset.RRset:
        rdatas = [_rdata(record_type, text) for text in texts]
        return dns.rrset.from_rdata_list(dns.name.from_text(name), self.ttl_seconds, rdatas)


def asks_once(server: DnsServer, **more: Any) -> Resolver:
    """A resolver that waits for each answer as long as it takes, and does not repeat the question."""
    resolver = Resolver([server.address], deadline_seconds=60, **more)
    resolver._stub.timeout = 60
    return resolver


class _UdpDoor(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Neither asyncio's nor uvloop's UDP transport is an instance of the class that names its methods.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.receive_datagram(self._transport, data, addr)


def _rdata(record_type: dns.rdatatype.RdataType, text: str | bytes) -> dns.rdata.Rdata:
    """A record of its text; a TXT value is cut into strings of 255 bytes as a zone would hold it."""
    if record_type == dns.rdatatype.TXT:
        value = text.encode() if isinstance(text, str) else text
        strings = [value[at : at + 255] for at in range(0, len(value), 255)] or [b""]
        wire = b"".join(bytes([len(part)]) + part for part in strings)
        return dns.rdata.from_wire(dns.rdataclass.IN, record_type, wire, 0, len(wire))
    return dns.rdata.from_text(
        dns.rdataclass.IN, record_type, str(text), origin=dns.name.root, relativize=False
    )


class ZoneLookup:
    """A Lookup over the same records, without a network. Names in `dead` ("*" for all) fail as temporary."""

    def __init__(self, records: Records | None = None, *, dead: set[str] | None = None) -> None:
        self.records = dict(records or {})
        self.dead = dead or set()
        self.asked: list[str] = []

    def txt(self, name: str, timeout_seconds: float) -> tuple[bytes, ...]:
        texts = self._find(name, "TXT")
        return tuple(text.encode() if isinstance(text, str) else text for text in texts)

    def mx(self, name: str, timeout_seconds: float) -> tuple[tuple[int, str], ...]:
        pairs = (str(text).split(" ", 1) for text in self._find(name, "MX"))
        return tuple((int(preference), host.removesuffix(".")) for preference, host in pairs)

    def ipv4(self, host: str, timeout_seconds: float) -> tuple[str, ...]:
        return tuple(str(text) for text in self._find(host, "A"))

    def ipv6(self, host: str, timeout_seconds: float) -> tuple[str, ...]:
        return tuple(str(text) for text in self._find(host, "AAAA"))

    def ptr(self, ip: str, timeout_seconds: float) -> tuple[str, ...]:
        return tuple(str(text).removesuffix(".") for text in self._find(ip, "PTR"))

    def _find(self, name: str, record_type: str) -> Sequence[str | bytes]:
        self.asked.append(name)
        if self.dead & {name, "*"}:
            raise DnsTemporary(name)
        return self.records.get((name.lower(), record_type), ())

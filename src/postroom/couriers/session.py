"""One SMTP session with one server (RFC 5321): greeting, STARTTLS, AUTH, then mail after mail."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from postroom.couriers.envelope import OutgoingEnvelope, make_envelope
from postroom.couriers.faults import describe
from postroom.couriers.replies import BadReply, Reply, ReplyLines
from postroom.couriers.wire import Wire, WireBroken
from postroom.outward.courier import DeliveryError, OutgoingMail, TlsAuthentication, TlsState

_BLOCK_BYTES = 64 * 1024
_SERVICE_CLOSING = 421  # RFC 5321 section 3.8
_START_INPUT = 354  # RFC 5321 section 4.1.1.4
_CHALLENGE = 334  # RFC 4954 section 4
# By the codes of OpenSSL.
_CERTIFICATE_FAULTS: dict[int | None, str] = {
    10: "certificate-expired",
    62: "certificate-host-mismatch",
    **dict.fromkeys((2, 18, 19, 20, 21), "certificate-not-trusted"),
}


class Timeouts(Struct, frozen=True):
    """Seconds per stage, as RFC 5321 section 4.5.3.2 asks; `block` is for each 64 kB of an email."""

    connect: float = 30
    tls: float = 60
    greeting: float = 300
    command: float = 300
    mail: float = 300
    rcpt: float = 300
    data: float = 120
    block: float = 180
    final_dot: float = 600
    quit: float = 5


# A relay is the operator's own: if it is silent for so long it hangs, and a retry is better.
# After the final dot it has the same time as any other: an email given up there may be sent twice.
RELAY_TIMEOUTS = Timeouts(connect=10, tls=20, greeting=20, command=20, mail=20, rcpt=20, data=30)


class _Step(Struct, frozen=True):
    name: str
    seconds: float
    is_content_next: bool = False

    def is_accepted(self, reply: Reply) -> bool:
        return reply.code == _START_INPUT if self.is_content_next else reply.is_accepting


class TlsFailed(DeliveryError):
    """No TLS, or none that proves the server. `result` is a term of RFC 8460."""

    def __init__(self, reason: str, result: str = "validation-failure") -> None:
        super().__init__(reason, permanent=False, enhanced="4.7.5")
        self.result = result
        self.own_ip = ""  # from which it was tried, if there was a connection


class SmtpSession:
    """Every failure is a DeliveryError whose reason names the host and the stage."""

    def __init__(self, wire: Wire, host: str, timeouts: Timeouts) -> None:
        self.host = host
        # Of the last email: from then on a lost answer may mean success (RFC 1047).
        self.has_sent_whole_mail = False
        self.mails_tried = 0
        self.tls_authentication: TlsAuthentication = "opportunistic"  # of the host, where there is TLS
        self.fault = ""  # what was wrong with TLS although the session continues, as a term of RFC 8460
        self._wire = wire
        self._timeouts = timeouts
        self._steps = (
            _Step("MAIL FROM", timeouts.mail),
            _Step("RCPT TO", timeouts.rcpt),
            _Step("DATA", timeouts.data, is_content_next=True),
        )
        self._lines = ReplyLines()
        self._features: Mapping[str, str] = {}
        self._is_at_rest = False  # between two emails, and both sides agree on that
        self._needs_reset = False

    @property
    def is_reusable(self) -> bool:
        return self._is_at_rest and self._wire.is_quiet

    @property
    def has_tls(self) -> bool:
        return self._wire.has_tls

    @property
    def own_ip(self) -> str:
        return self._wire.own_ip

    @property
    def tls(self) -> TlsState:
        return self.tls_authentication if self._wire.has_tls else "none"

    def certificates(self) -> list[bytes]:
        return self._wire.certificates()

    def offers(self, keyword: str) -> bool:
        return keyword in self._features

    async def greet(self, own_name: str) -> None:
        """Reads the greeting and sends EHLO."""
        self._require(await self._read("connecting", self._timeouts.greeting), "connecting")
        await self.introduce(own_name)

    async def introduce(self, own_name: str) -> None:
        name = own_name.encode("ascii")
        reply = await self._ask("EHLO", b"EHLO " + name)
        if reply.is_permanent:  # a server without extensions (RFC 5321 section 3.2)
            self._require(await self._ask("HELO", b"HELO " + name), "HELO")
            self._features = {}
        else:
            self._require(reply, "EHLO")
            self._features = _features(reply)
        self._is_at_rest = True

    async def start_tls(self, context: ssl.SSLContext) -> bool:
        """Return False if the server declines. A failed handshake is a DeliveryError."""
        self._is_at_rest = False
        reply = await self._ask("STARTTLS", b"STARTTLS")
        if not reply.is_accepting:
            self._is_at_rest = reply.code != _SERVICE_CLOSING
            return False
        try:
            async with asyncio.timeout(self._timeouts.tls):
                await self._wire.start_tls(context, self.host)
        except (OSError, ValueError, WireBroken) as error:  # ssl.SSLError and TimeoutError are OSErrors
            reason = f"no TLS with {self.host}: {describe(error)}"
            raise TlsFailed(reason, result_of(error)) from error
        return True

    async def sign_in(self, username: str, password: str) -> None:
        mechanisms = self._features.get("AUTH", "").upper().split()
        if "PLAIN" in mechanisms:
            token = base64.b64encode(f"\0{username}\0{password}".encode())  # RFC 4616 section 2
            reply = await self._ask("AUTH", b"AUTH PLAIN " + token)
        elif "LOGIN" in mechanisms:
            reply = await self._sign_in_by_login(username, password)
        else:
            raise self._fault("EHLO", "offers neither AUTH PLAIN nor AUTH LOGIN")
        self._require(reply, "AUTH")

    async def sign_in_with_token(self, username: str, token: str) -> None:
        """Sign in by OAuth: OAUTHBEARER (RFC 7628), or the older XOAUTH2."""
        mechanisms = self._features.get("AUTH", "").upper().split()
        if "XOAUTH2" in mechanisms:
            name, first = b"XOAUTH2", f"user={username}\1auth=Bearer {token}\1\1"
        elif "OAUTHBEARER" in mechanisms:
            escaped = username.replace("=", "=3D").replace(",", "=2C")  # RFC 5801 section 4
            name, first = b"OAUTHBEARER", f"n,a={escaped},\1auth=Bearer {token}\1\1"
        else:
            raise self._fault("EHLO", "offers neither AUTH XOAUTH2 nor OAUTHBEARER")
        reply = await self._ask("AUTH", b"AUTH " + name + b" " + base64.b64encode(first.encode()))
        # It says what is wrong, and waits for a last answer before it refuses (RFC 7628 section 3.2.3).
        if reply.code == _CHALLENGE:
            reply = await self._ask("AUTH", b"AQ==" if name == b"OAUTHBEARER" else b"")
        self._require(reply, "AUTH")

    async def send(self, mail: OutgoingMail) -> Reply:
        """Send an email in one transaction; return the answer to the final dot."""
        self.has_sent_whole_mail = False
        envelope = make_envelope(mail, self.host, self._features)
        self.mails_tried += 1
        self._is_at_rest = False
        if self._needs_reset:
            self._require(await self._ask("RSET", b"RSET"), "RSET")
        self._needs_reset = True
        await self._open_transaction(envelope)
        reply = await self._send_content(mail.raw)
        self._is_at_rest = _ends_in_peace(reply)
        self._needs_reset = False
        self._require(reply, "the final dot")
        return reply

    async def quit(self) -> None:
        """Sends QUIT if possible; never fails."""
        try:
            if self.is_reusable:
                self._wire.write(b"QUIT\r\n")
                with contextlib.suppress(DeliveryError):
                    await self._read("QUIT", self._timeouts.quit)
        except WireBroken:
            pass
        finally:
            self._wire.abort()

    def abort(self) -> None:
        self._wire.abort()

    async def _open_transaction(self, envelope: OutgoingEnvelope) -> None:
        commands = (envelope.mail_line, envelope.rcpt_line, b"DATA\r\n")
        in_one_write = self.offers("PIPELINING")
        replies = await (self._pipeline(commands) if in_one_write else self._step_by_step(commands))
        for step, reply in zip(self._steps, replies, strict=False):
            if not step.is_accepted(reply):
                self._is_at_rest = reply.is_refusing and _ends_in_peace(reply)
                raise self._refusal(reply, step.name)

    async def _step_by_step(self, commands: Sequence[bytes]) -> list[Reply]:
        replies: list[Reply] = []
        for step, command in zip(self._steps, commands, strict=True):
            self._write(step.name, command)
            replies.append(await self._read(step.name, step.seconds))
            if not step.is_accepted(replies[-1]):
                break
        return replies

    async def _pipeline(self, commands: Sequence[bytes]) -> list[Reply]:
        """Send all commands in one write (RFC 2920)."""
        self._write(self._steps[0].name, b"".join(commands))
        replies: list[Reply] = []
        try:
            for step in self._steps:
                replies.append(await self._read(step.name, step.seconds))
            if replies[-1].code == _START_INPUT and not self._are_accepted(replies):
                # The server waits for content although no recipient is left; an empty one ends that
                # (RFC 2920 section 3.1).
                await self._ask("DATA", b".")
        except DeliveryError:
            if self._are_accepted(replies):
                raise
            self._wire.abort()  # it refused and then failed: the refusal says more
        return replies

    def _are_accepted(self, replies: Sequence[Reply]) -> bool:
        return all(map(_Step.is_accepted, self._steps, replies))

    async def _send_content(self, raw: bytes) -> Reply:
        blocks = stuffed_blocks(raw)
        last = next(blocks)
        for block in blocks:
            await self._send_block(last)
            last = block
        self._write("the content", last + b".\r\n")
        self.has_sent_whole_mail = True
        return await self._read("the final dot", self._timeouts.final_dot)

    async def _send_block(self, block: bytes) -> None:
        try:
            self._wire.write(block)
            async with asyncio.timeout(self._timeouts.block):
                await self._wire.drain()
        except (WireBroken, TimeoutError) as error:
            raise await self._broken_content(error) from error

    async def _broken_content(self, error: Exception) -> DeliveryError:
        """Return the error. A server that hangs up during the content often says why first."""
        with contextlib.suppress(DeliveryError):
            reply = await self._read("the content", 0)
            if reply.is_refusing:
                return self._refusal(reply, "the content")
        return self._fault("the content", describe(error))

    async def _sign_in_by_login(self, username: str, password: str) -> Reply:
        reply = await self._ask("AUTH", b"AUTH LOGIN")
        for secret in (username, password):
            if reply.code != _CHALLENGE:
                return reply
            reply = await self._ask("AUTH", base64.b64encode(secret.encode()))
        return reply

    async def _ask(self, name: str, line: bytes) -> Reply:
        self._write(name, line + b"\r\n")
        return await self._read(name, self._timeouts.command)

    def _write(self, name: str, data: bytes) -> None:
        try:
            self._wire.write(data)
        except WireBroken as error:
            raise self._fault(name, str(error)) from error

    async def _read(self, name: str, seconds: float) -> Reply:
        try:
            reply = self._take_reply()
            return reply if reply is not None else await self._wait_for_reply(seconds)
        except TimeoutError as error:
            raise self._fault(name, f"gave no answer within {seconds:g} s") from error
        except (WireBroken, BadReply) as error:
            raise self._fault(name, str(error)) from error

    async def _wait_for_reply(self, seconds: float) -> Reply:
        async with asyncio.timeout(seconds):
            while (reply := self._take_reply()) is None:
                await self._wire.wait()
        return reply

    def _take_reply(self) -> Reply | None:
        """Return the next reply, if it is complete."""
        while (line := self._wire.take_line()) is not None:
            reply = self._lines.add(line)
            if reply is not None:
                return reply
        return None

    def _require(self, reply: Reply, name: str) -> None:
        if not reply.is_accepting:
            raise self._refusal(reply, name)

    def _refusal(self, reply: Reply, name: str) -> DeliveryError:
        if not reply.is_refusing:
            return self._fault(name, f"gave an unexpected answer: {reply.code} {reply.text}")
        return DeliveryError(
            f"{self.host} said after {name}: {reply.code} {reply.text}",
            permanent=reply.is_permanent,
            code=reply.code,
            enhanced=reply.enhanced,
        )

    def _fault(self, name: str, reason: str) -> DeliveryError:
        return DeliveryError(
            f"{self.host} {reason} (after {name})",
            permanent=False,
            enhanced="4.4.2",
            unknown_outcome=self.has_sent_whole_mail,
        )


def result_of(error: BaseException) -> str:
    """Return why a certificate was refused, as a term of RFC 8460, 4.3.2."""
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None
    return _CERTIFICATE_FAULTS.get(code, "validation-failure")


def stuffed_blocks(raw: bytes) -> Iterator[bytes]:
    """Yield the content with dots doubled (RFC 5321, 4.5.2), in blocks that end with a line; linear time.

    There is always a block.
    """
    start = 0
    while start < len(raw):
        cut = raw.find(b"\r\n", start + _BLOCK_BYTES)
        end = cut + 2 if cut >= 0 else len(raw)
        block = raw[start:end].replace(b"\r\n.", b"\r\n..")
        yield b"." + block if block.startswith(b".") else block
        start = end
    if not raw.endswith(b"\r\n"):
        yield b"\r\n"


def _features(reply: Reply) -> dict[str, str]:
    """Return parameters by keyword; the first line is the server's name."""
    # Some servers still write AUTH= as before RFC 2554.
    pairs = (line.replace("AUTH=", "AUTH ", 1).partition(" ") for line in reply.lines[1:])
    return {keyword.upper(): parameters for keyword, _, parameters in pairs}


def _ends_in_peace(reply: Reply) -> bool:
    """Return whether both sides agree that no mail is under way and the session goes on."""
    return (reply.is_accepting or reply.is_refusing) and reply.code != _SERVICE_CLOSING

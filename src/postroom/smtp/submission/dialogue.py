"""SMTP for mail clients (RFC 6409): login first, then the dialogue is as with any client."""

import binascii

from msgspec import Struct

from postroom.smtp.backend import RecipientVerdict
from postroom.smtp.dialogue.effects import Effect, MailOutcome, Send
from postroom.smtp.dialogue.protocol import SmtpDialogue
from postroom.smtp.limits import SessionLimits

KEYWORDS = ("AUTH PLAIN LOGIN",)
MAX_AUTH_LINE_BYTES = 2048  # PLAIN and LOGIN need less (RFC 4954 section 4)
# RFC 4954 sections 4 and 6
LOG_IN_FIRST = b"530 5.7.0 Log in first: your inbox's address, and an API key that reaches it\r\n"
TLS_FIRST = b"530 5.7.0 Use STARTTLS before you log in\r\n"
LOGGED_IN = b"235 2.7.0 You are logged in\r\n"
NOT_PLAIN = b"504 5.5.4 Only PLAIN and LOGIN are offered\r\n"
NOT_READABLE = b"501 5.5.2 This is no answer to the mechanism\r\n"
GIVEN_UP = b"501 5.7.0 You have given up\r\n"
# "Username:" and "Password:" in base64: clients of LOGIN, which no RFC defines, wait for these words.
ASK_NAME, ASK_PASSWORD = b"334 VXNlcm5hbWU6\r\n", b"334 UGFzc3dvcmQ6\r\n"


class AskLogin(Struct, frozen=True):
    """A question, to be answered with `SubmissionDialogue.login_answer`."""

    name: str
    password: str


SubmissionEffect = Effect | AskLogin


class SubmissionDialogue:
    """`is_private`: passwords may be sent on this connection as it is."""

    def __init__(self, limits: SessionLimits, offers_tls: bool, is_private: bool) -> None:
        self._inner = SmtpDialogue(limits, offers_tls)
        self._is_private = is_private
        self._input = bytearray()
        self._mechanism = ""
        self._name: str | None = None
        self._is_asking_login = False
        self._failures = 0
        self._max_failures = limits.max_errors
        self._max_line_bytes = limits.max_line_bytes
        self.is_logged_in = False
        self._inner.keywords = KEYWORDS if is_private else ()

    @property
    def is_asking(self) -> bool:
        return self._is_asking_login or self._inner.is_asking

    @property
    def is_in_data(self) -> bool:
        return self._inner.is_in_data

    def greet(self) -> list[SubmissionEffect]:
        return list(self._inner.greet())

    def feed(self, data: bytes) -> list[SubmissionEffect]:
        if self.is_logged_in and not self._input:
            return list(self._inner.feed(data))
        self._input += data
        return self._go_on()

    def recipient_answer(self, verdict: RecipientVerdict) -> list[SubmissionEffect]:
        return list(self._inner.recipient_answer(verdict))

    def mail_answer(self, outcome: MailOutcome) -> list[SubmissionEffect]:
        return list(self._inner.mail_answer(outcome))

    def hang_up(self, farewell: bytes) -> list[SubmissionEffect]:
        return list(self._inner.hang_up(farewell))

    def tls_started(self) -> list[SubmissionEffect]:
        """Forgets everything the client said before TLS (RFC 3207 section 4.2)."""
        self._input.clear()
        self._mechanism, self._name = "", None
        self._is_private = True
        self._inner.keywords = KEYWORDS
        return list(self._inner.tls_started())

    def login_answer(self, refusal: bytes | None) -> list[SubmissionEffect]:
        """Answer a login. Without a refusal the client is logged in."""
        self._is_asking_login = False
        self.is_logged_in = refusal is None
        if refusal is None:
            return [Send(LOGGED_IN), *self._go_on()]
        return [*self._refuse(refusal), *self._go_on()]

    # Lines before the login

    def _go_on(self) -> list[SubmissionEffect]:
        effects: list[SubmissionEffect] = []
        while self._input and not self.is_asking:
            if self.is_logged_in:
                rest = bytes(self._input)
                self._input.clear()
                return [*effects, *self._inner.feed(rest)]
            end = self._input.find(b"\n") + 1
            if end == 0 and len(self._input) < self._max_line_bytes:
                break
            line = bytes(self._input[: end or len(self._input)])
            del self._input[: len(line)]
            effects += self._line(line)
        return effects

    def _line(self, line: bytes) -> list[SubmissionEffect]:
        if self._mechanism:
            return self._receive(line.strip(b"\r\n"))
        verb = line[:8].split()[0].decode("ascii", "replace").upper() if line.split() else ""
        if verb == "AUTH":
            return self._auth(line.decode("ascii", "replace").split()[1:])
        if verb in ("MAIL", "RCPT", "DATA", "BDAT"):
            return self._refuse(LOG_IN_FIRST if self._is_private else TLS_FIRST)
        if verb == "STARTTLS":  # what followed it in the clear is refused by the inner dialogue
            line += bytes(self._input)
            self._input.clear()
        return list(self._inner.feed(line))

    def _auth(self, words: list[str]) -> list[SubmissionEffect]:
        if not self._is_private:
            return self._refuse(TLS_FIRST)
        mechanism = words[0].upper() if words else ""
        if mechanism not in ("PLAIN", "LOGIN"):
            return self._refuse(NOT_PLAIN)
        self._mechanism, self._name = mechanism, None
        if len(words) > 1:
            return self._receive(b"" if words[1] == "=" else words[1].encode())  # RFC 4954 section 4
        return [Send(b"334 \r\n" if mechanism == "PLAIN" else ASK_NAME)]

    def _receive(self, encoded: bytes) -> list[SubmissionEffect]:
        mechanism, name = self._mechanism, self._name
        self._mechanism = ""
        if encoded == b"*":  # RFC 4954 section 4
            return self._refuse(GIVEN_UP)
        heard = _decoded(encoded)
        if heard is None:
            return self._refuse(NOT_READABLE)
        if mechanism == "PLAIN":
            words = heard.split("\0")  # RFC 4616 section 2: authorization identity, name, password
            return self._ask(words[1], words[2]) if len(words) == 3 else self._refuse(NOT_READABLE)
        if name is not None:
            return self._ask(name, heard)
        self._mechanism, self._name = mechanism, heard
        return [Send(ASK_PASSWORD)]

    def _ask(self, name: str, password: str) -> list[SubmissionEffect]:
        self._is_asking_login = True
        return [AskLogin(name, password)]

    def _refuse(self, reply: bytes) -> list[SubmissionEffect]:
        self._failures += 1
        if self._failures < self._max_failures:
            return [Send(reply)]
        return [Send(reply), *self._inner.hang_up(b"421 4.7.0 Too many errors\r\n")]


def _decoded(encoded: bytes) -> str | None:
    if len(encoded) > MAX_AUTH_LINE_BYTES:
        return None
    try:
        return binascii.a2b_base64(encoded, strict_mode=True).decode()
    except (binascii.Error, ValueError):
        return None

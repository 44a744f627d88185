"""The dialogue of one session without any I/O: bytes in, effects out (RFC 3501)."""

import binascii

from msgspec import structs

from postroom.imap.dialogue import commands, search_keys
from postroom.imap.dialogue.cursor import BadCommand, CommandCursor
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
from postroom.imap.dialogue.reader import (
    CommandReader,
    CommandText,
    LineTooLong,
    LiteralRefused,
    MailPiece,
    WantsMore,
)
from postroom.imap.dialogue.requests import (
    Authenticate,
    EnableExtensions,
    LogIn,
    PlainCommand,
    Request,
    SearchMails,
)

ALWAYS = b"IMAP4rev1 LITERAL+ ID ENABLE"  # RFC 3501, 7888, 2971, 5161
# RFC 2177, 2342, 4315, 6851, 3691, 6154, 7162, 4731, 5819, 8438, 6855, in this order
LOGGED_IN = (
    b"IDLE NAMESPACE UIDPLUS MOVE UNSELECT SPECIAL-USE CONDSTORE ESEARCH LIST-STATUS STATUS=SIZE UTF8=ACCEPT"
)
BYE_TOO_LONG = b"* BYE [ALERT] This line is too long.\r\n"
BYE_ERRORS = b"* BYE [ALERT] Too many commands that could not be read.\r\n"
GO_ON = b"+ Go ahead.\r\n"
SHUTTING_DOWN = b"* BYE [UNAVAILABLE] The server is stopping. Connect again in a moment.\r\n"


class ImapDialogue:
    """`is_private`: passwords may be sent on this connection as it is."""

    def __init__(self, limits: ImapLimits, offers_tls: bool, is_private: bool) -> None:
        self._limits = limits
        self._offers_tls = offers_tls
        self._is_private = is_private
        self._reader = CommandReader(limits, self._may_bring_mail)
        self._tag = b""
        self._asked: Request | None = None
        self._awaits_credentials = False
        self._errors = 0
        self._has_ended = False
        self.is_logged_in = False
        self.is_selected = False
        self.is_utf8 = False

    @property
    def is_asking(self) -> bool:
        """Return False during IDLE, which may be ended at any time."""
        return self._asked is not None and not self.is_idling

    @property
    def is_idling(self) -> bool:
        return self._asked == PlainCommand("IDLE")

    # What happens to it

    def greet(self) -> list[Effect]:
        return [Write(b"* OK [CAPABILITY " + self._capabilities() + b"] Postroom is ready.\r\n")]

    def feed(self, data: bytes) -> list[Effect]:
        if self._has_ended:
            return []
        self._reader.feed(data)
        if self.is_idling:
            return self._listen_for_done()
        return [] if self.is_asking else self._go_on()

    def performed(self, answer: Performed) -> list[Effect]:
        """Takes the answer to the question; then reads what came meanwhile."""
        was_login = not self.is_logged_in and answer.is_logged_in
        self.is_logged_in, self.is_selected = answer.is_logged_in, answer.is_selected
        self._asked = None
        reply = answer.reply
        if was_login:
            reply = b"OK [CAPABILITY " + self._capabilities() + b"] " + reply.removeprefix(b"OK ")
        return [self._tagged(reply), *self._go_on()]

    def tls_started(self) -> list[Effect]:
        """Forget everything learnt before TLS, also input that came too early (RFC 3501, 6.2.1)."""
        self._offers_tls, self._is_private = False, True
        self._asked = None
        self._reader.forget()
        return []

    def hang_up(self, farewell: bytes) -> list[Effect]:
        self._has_ended = True
        return [Write(farewell), EndSession()]

    # Commands

    def _go_on(self) -> list[Effect]:
        effects: list[Effect] = []
        while not self._has_ended and self._asked is None:
            following = self._credentials() if self._awaits_credentials else self._next_command()
            if following is None:
                break
            effects += following
        return effects

    def _next_command(self) -> list[Effect] | None:
        read = self._reader.next()
        match read:
            case None:
                return None
            case WantsMore():
                return [Write(GO_ON)]
            case MailPiece():
                return [read]
            case LineTooLong():
                return self.hang_up(BYE_TOO_LONG)
            case LiteralRefused(text, was_sent):
                return self._refuse_literal(text, was_sent)
            case CommandText():
                return self._command(read)

    def _refuse_literal(self, text: bytes, was_sent: bool) -> list[Effect]:
        if was_sent:
            return self.hang_up(b"* BYE [TOOBIG] This literal is too large.\r\n")
        self._tag = text.split(b" ", 1)[0][:100] or b"*"
        return self._count_error([DropAppended(), self._tagged(b"NO [TOOBIG] This literal is too large.")])

    def _command(self, command: CommandText) -> list[Effect]:
        cursor = CommandCursor(command, self.is_utf8)
        dropped: list[Effect] = [DropAppended()] if command.literals else []
        self._tag = b"*"
        try:
            self._tag = cursor.tag().encode()[:100]
            cursor.require(b" ")
            name = cursor.word()
            if (refusal := self._find_refusal(name)) is not None:
                return self._count_error([*dropped, self._tagged(refusal)])
            request = commands.read(name, cursor, self._limits.max_depth)
            if isinstance(request, SearchMails):
                request = structs.replace(request, tag=self._tag)
            return self._obey(request)
        except BadCommand as error:
            reply = b"BAD " + str(error).encode("ascii", "replace") + b"."
            return self._count_error([*dropped, self._tagged(reply)])
        except search_keys.UnknownCharset:
            return self._count_error([self._tagged(b"NO [BADCHARSET (UTF-8)] Only UTF-8 is read.")])

    def _find_refusal(self, name: str) -> bytes | None:
        """Return the refusal of a command that is not allowed in this state (RFC 3501, 3)."""
        if name in commands.ANY_STATE:
            return None
        if name in commands.BEFORE_LOGIN:
            return b"BAD You are logged in already." if self.is_logged_in else None
        if not self.is_logged_in:
            return b"BAD Log in first."
        if name in commands.SELECTED and not self.is_selected:
            return b"BAD Select a folder first."
        return None

    def _obey(self, request: Request) -> list[Effect]:
        if isinstance(request, LogIn | Authenticate) and not self._is_private:
            return self._count_error([self._tagged(b"NO [PRIVACYREQUIRED] Use TLS before you log in.")])
        if isinstance(request, Authenticate):
            return self._authenticate(request)
        if isinstance(request, EnableExtensions):
            self.is_utf8 = self.is_utf8 or "UTF8=ACCEPT" in request.names
        if isinstance(request, PlainCommand):
            return self._plain(request.name)
        return self._ask(request)

    def _ask(self, request: Request) -> list[Effect]:
        self._asked = request
        return [PerformRequest(request)]

    def _ask_plain(self, name: str) -> list[Effect]:
        return self._ask(PlainCommand(name))

    def _plain(self, name: str) -> list[Effect]:
        """Ask also for commands that could be answered at once, so that all are rate limited."""
        match name:
            case "CAPABILITY":
                return [Write(b"* CAPABILITY " + self._capabilities() + b"\r\n"), *self._ask_plain(name)]
            case "NAMESPACE":
                return [Write(b'* NAMESPACE (("" "/")) NIL NIL\r\n'), *self._ask_plain(name)]
            case "ID":
                return [Write(b'* ID ("name" "Postroom")\r\n'), *self._ask_plain(name)]
            case "LOGOUT":
                self._has_ended = True
                return [Write(b"* BYE Goodbye.\r\n"), self._tagged(b"OK Done."), EndSession()]
            case "STARTTLS":
                return self._start_tls()
            case "IDLE":  # RFC 2177
                return [Write(b"+ idling\r\n"), *self._ask_plain(name), *self._listen_for_done()]
        return self._ask_plain(name)

    def _start_tls(self) -> list[Effect]:
        if not self._offers_tls:
            return self._count_error([self._tagged(b"BAD TLS is on already, or not offered.")])
        self._asked = PlainCommand("STARTTLS")
        return [self._tagged(b"OK Begin TLS now."), UpgradeToTls()]

    def _listen_for_done(self) -> list[Effect]:
        line = self._reader.line()
        if line is None:
            return self.hang_up(BYE_TOO_LONG) if self._reader.is_line_too_long else []
        if line.strip().upper() == b"DONE":
            self._asked = PlainCommand("DONE")
            return [EndIdle()]
        return self.hang_up(b"* BYE During IDLE only DONE is read.\r\n")

    # Logging in

    def _authenticate(self, request: Authenticate) -> list[Effect]:
        if request.mechanism != "PLAIN":
            return self._count_error([self._tagged(b"NO [CANNOT] Only PLAIN is offered.")])
        if request.initial is not None:
            return self._log_in(request.initial)
        self._awaits_credentials = True
        return [Write(b"+ \r\n")]

    def _credentials(self) -> list[Effect] | None:
        line = self._reader.line()
        if line is None:
            return self.hang_up(BYE_TOO_LONG) if self._reader.is_line_too_long else None
        self._awaits_credentials = False
        if line == b"*":  # RFC 3501 section 6.2.2
            return self._count_error([self._tagged(b"BAD You have given up.")])
        return self._log_in(line)

    def _log_in(self, encoded: bytes) -> list[Effect]:
        """Log in by authorization identity, user name and password (RFC 4616, 2)."""
        try:
            words = binascii.a2b_base64(encoded, strict_mode=True).decode().split("\0")
        except (binascii.Error, UnicodeError, ValueError):
            words = []
        if len(words) != 3:
            return self._count_error([self._tagged(b"BAD This is no answer to PLAIN (RFC 4616).")])
        return self._ask(LogIn(words[1], words[2]))

    # Answers

    def _tagged(self, reply: bytes) -> Write:
        return Write(self._tag + b" " + reply + b"\r\n")

    def _count_error(self, effects: list[Effect]) -> list[Effect]:
        self._errors += 1
        if self._errors < self._limits.max_errors:
            return effects
        return [*effects, *self.hang_up(BYE_ERRORS)]

    def _capabilities(self) -> bytes:
        if self.is_logged_in:
            return ALWAYS + b" " + LOGGED_IN
        words = [ALWAYS, b"SASL-IR"]
        if self._offers_tls:
            words.append(b"STARTTLS")
        words.append(b"AUTH=PLAIN" if self._is_private else b"LOGINDISABLED")
        return b" ".join(words)

    def _may_bring_mail(self, text: bytes) -> bool:
        """Return whether a literal here is an email: it follows the folder's name, which may be one too."""
        words = text.split(b" ", 3)
        return self.is_logged_in and len(words) > 3 and words[1].upper() == b"APPEND"

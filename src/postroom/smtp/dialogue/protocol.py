"""The receiving side of SMTP (RFC 5321) as a pure state machine: bytes and answers in, effects out."""

from collections.abc import Callable, Hashable
from enum import Enum, auto

from msgspec import Struct, field

from postroom.smtp.backend import Accepted, RecipientVerdict, Refused
from postroom.smtp.dialogue import addresses, commands, replies
from postroom.smtp.dialogue.body import Body
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
    Send,
    StartTls,
)
from postroom.smtp.dialogue.replies import Refusal
from postroom.smtp.envelope import Recipient
from postroom.smtp.limits import SessionLimits

_REFUSED_RECIPIENT = {
    Refused.UNKNOWN: replies.UNKNOWN_RECIPIENT,
    Refused.NOT_LOCAL: replies.NO_RELAY,
    Refused.TRY_LATER: replies.TRY_LATER,
    Refused.FULL: replies.MAILBOX_FULL,
    Refused.PUT_OFF: replies.TOO_MANY_UNKNOWN,
}
_NOT_STORED = {
    MailNotStored.TRY_LATER: replies.TRY_LATER,
    MailNotStored.STORAGE_FULL: replies.STORAGE_FULL,
    MailNotStored.LOOPS: replies.MAIL_LOOPS,
}
# The client has to read the answer before it can know what to send next (RFC 2920 section 3.1, RFC 3207).
_LAST_IN_GROUP = {"EHLO", "HELO", "DATA", "STARTTLS"}


class Phase(Enum):
    BEFORE_GREETING = auto()
    COMMAND = auto()
    DATA = auto()
    ASKING = auto()
    STARTING_TLS = auto()
    CLOSED = auto()


class Mail(Struct):
    """The email transaction, from MAIL to the final dot."""

    mail_from: str
    smtputf8: bool
    recipients: dict[Hashable, Recipient] = field(default_factory=dict)
    accepted_commands: int = 0
    commands_over_limit: int = 0
    body: Body = field(default_factory=Body)
    is_too_large: bool = False

    def add(self, recipient: Recipient) -> None:
        self.accepted_commands += 1
        self.recipients.setdefault(recipient.destination, recipient)


class SmtpDialogue:
    """One client. A question is always the last effect of a list; input that comes meanwhile is kept."""

    def __init__(self, limits: SessionLimits, offers_tls: bool) -> None:
        self.keywords: tuple[str, ...] = ()  # extensions offered by the dialogue in front of this one
        self._limits = limits
        self._offers_tls = offers_tls
        self._is_encrypted = False
        self._phase = Phase.BEFORE_GREETING
        self._input = bytearray()
        self._skips_line = False
        self._effects: list[Effect] = []
        self._farewell: bytes | None = None
        self._errors = 0
        self._commands_without_mail = 0
        self._helo_name = ""
        self._is_extended = False
        self._mail: Mail | None = None
        self._asked_address = ""

    @property
    def is_asking(self) -> bool:
        """Return whether the client waits for the server, not the other way round."""
        return self._phase in (Phase.ASKING, Phase.STARTING_TLS)

    @property
    def is_in_data(self) -> bool:
        return self._phase is Phase.DATA

    # Input of a session

    def greet(self) -> list[Effect]:
        if self._phase is Phase.BEFORE_GREETING:
            self._phase = Phase.COMMAND
            self._send(replies.greeting(self._limits.hostname))
        return self._take_effects()

    def feed(self, data: bytes) -> list[Effect]:
        """Takes bytes from the client, in pieces of any size."""
        if self._phase is Phase.DATA:
            data = self._read_mail(data)
        if self._phase is Phase.CLOSED:
            return self._take_effects()
        if self._phase in (Phase.BEFORE_GREETING, Phase.STARTING_TLS):
            self._close(replies.OUT_OF_STEP)
        else:
            self._input += data
            self._read_commands()
        return self._take_effects()

    def recipient_answer(self, verdict: RecipientVerdict) -> list[Effect]:
        self._phase = Phase.COMMAND
        if isinstance(verdict, Accepted):
            self._current_mail().add(Recipient(self._asked_address, verdict.destination, verdict.may_refuse))
            self._send(replies.RECIPIENT_OK)
        else:
            self._refuse(_REFUSED_RECIPIENT[verdict])
        return self._go_on()

    def mail_answer(self, outcome: MailOutcome) -> list[Effect]:
        self._phase = Phase.COMMAND
        self._mail = None
        if isinstance(outcome, MailNotStored):
            self._refuse(_NOT_STORED[outcome])
        elif isinstance(outcome, MailAnswered) and not outcome.is_accepted:
            self._refuse(outcome.reply)
        else:
            self._errors = self._commands_without_mail = 0
            self._send(outcome.reply if isinstance(outcome, MailAnswered) else replies.stored(outcome.id))
        return self._go_on()

    def tls_started(self) -> list[Effect]:
        """Forgets everything the client said before TLS (RFC 3207 section 4.2)."""
        if self._phase is not Phase.STARTING_TLS:
            return []
        self._phase = Phase.COMMAND
        self._is_encrypted = True
        self._forget_hello()
        return self._go_on()

    def hang_up(self, farewell: bytes) -> list[Effect]:
        """Ends the session with a last reply, after the answer that the client waits for."""
        if self._phase is Phase.ASKING:
            self._farewell = farewell
        elif self._phase is Phase.STARTING_TLS:
            # A reply in the clear would break the handshake.
            self._phase = Phase.CLOSED
            self._effects.append(HangUp(is_expected=True))
        elif self._phase is not Phase.CLOSED:
            self._close(farewell)
        return self._take_effects()

    def _go_on(self) -> list[Effect]:
        if self._farewell is not None and self._phase is not Phase.CLOSED:
            self._close(self._farewell)
        self._read_commands()
        return self._take_effects()

    # Lines

    def _read_commands(self) -> None:
        while self._input and self._phase is Phase.COMMAND and self._read_line():
            pass

    def _read_line(self) -> bool:
        """Handles the next line if it is complete; it ends at LF, so that a bare LF is noticed."""
        end = self._input.find(b"\n") + 1
        if end == 0:
            self._shorten_endless_line()
            return False
        line = self._input[:end]
        del self._input[:end]
        if self._skips_line or len(line) > self._limits.max_line_bytes:
            self._skips_line = False
            self._refuse(replies.LINE_TOO_LONG)
        elif not line.endswith(b"\r\n"):
            # RFC 5321 section 2.3.8. A client that ends lines with LF alone may end its email so too: do not
            # guess, hang up.
            self._close(replies.BARE_LINE_FEED)
        else:
            self._run_command(line[:-2])
        return True

    def _shorten_endless_line(self) -> None:
        if len(self._input) >= self._limits.max_line_bytes:
            self._skips_line = True
            self._input.clear()

    def _run_command(self, line: bytearray) -> None:
        try:
            verb, argument = commands.split_line(line)
            command = _COMMANDS.get(verb)
            if self._input and not self._may_pipeline(verb):
                self._close(replies.OUT_OF_STEP)
            elif verb == "AUTH" and self.keywords:  # only heard here after a login (RFC 4954 section 4)
                raise Refusal(replies.LOGGED_IN_ALREADY)
            elif command is None:
                raise Refusal(replies.UNKNOWN_COMMAND)
            elif self._has_patience_for(verb):
                command(self, argument)
        except Refusal as refusal:
            self._refuse(refusal.reply)

    def _may_pipeline(self, verb: str) -> bool:
        return verb == "QUIT" or (self._is_extended and verb not in _LAST_IN_GROUP)

    def _has_patience_for(self, verb: str) -> bool:
        if verb in ("RCPT", "QUIT"):
            return True
        self._commands_without_mail += 1
        if self._commands_without_mail <= self._limits.max_commands_without_mail:
            return True
        self._close(replies.TOO_MANY_COMMANDS)
        return False

    # Commands

    def _ehlo(self, name: str) -> None:
        self._greeted_by(name, is_extended=True)
        # RFC 2920, RFC 1870, RFC 6152, RFC 2034; STARTTLS is not offered again (RFC 3207 section 4.2).
        keywords = ["PIPELINING", f"SIZE {self._limits.max_message_bytes}", "8BITMIME", "ENHANCEDSTATUSCODES"]
        if self._offers_tls and not self._is_encrypted:
            keywords.append("STARTTLS")
        self._send(replies.extended_hello(self._limits.hostname, [*keywords, *self.keywords, "SMTPUTF8"]))

    def _helo(self, name: str) -> None:
        self._greeted_by(name, is_extended=False)
        self._send(replies.hello(self._limits.hostname))

    def _greeted_by(self, name: str, is_extended: bool) -> None:
        commands.require_host_name(name)
        self._forget_hello()  # also the email that was begun: RFC 5321 section 4.1.4
        self._helo_name = name
        self._is_extended = is_extended

    def _start_mail(self, text: str) -> None:
        commands.require(self._helo_name != "", replies.HELLO_FIRST)  # RFC 5321 section 4.1.1.1
        commands.require(self._mail is None, replies.MAIL_TWICE)  # RFC 5321 section 4.1.4
        argument = commands.read_path(text, "FROM")
        commands.require_mail_parameters(argument.parameters, self._limits.max_message_bytes)
        smtputf8 = "SMTPUTF8" in argument.parameters
        commands.require(smtputf8 or argument.path.isascii(), replies.UTF8_NEEDED)
        self._mail = Mail(addresses.read_sender(argument.path), smtputf8)
        self._send(replies.SENDER_OK)

    def _rcpt(self, text: str) -> None:
        mail = self._current_mail()
        if mail.accepted_commands >= self._limits.max_recipients:
            self._refuse_recipient_over_limit(mail)
            return
        argument = commands.read_path(text, "TO")
        commands.require(not argument.parameters, replies.UNKNOWN_PARAMETER)
        commands.require(mail.smtputf8 or argument.path.isascii(), replies.UTF8_NEEDED)
        self._asked_address = addresses.read_recipient(argument.path)
        self._ask(AskRecipient(self._asked_address))

    def _refuse_recipient_over_limit(self, mail: Mail) -> None:
        mail.commands_over_limit += 1
        if mail.commands_over_limit > self._limits.max_refused_recipients:
            raise Refusal(replies.TOO_MANY_RECIPIENTS)
        self._send(replies.TOO_MANY_RECIPIENTS)

    def _data(self, argument: str) -> None:
        commands.require(argument == "")
        # RFC 5321 section 3.3: an email without an accepted recipient has no DATA.
        commands.require(bool(self._current_mail().recipients), replies.NO_RECIPIENTS)
        self._phase = Phase.DATA
        self._send(replies.START_MAIL)
        self._effects.append(BeginMail())

    def _current_mail(self) -> Mail:
        if self._mail is None:
            raise Refusal(replies.MAIL_FIRST)
        return self._mail

    def _rset(self, argument: str) -> None:
        commands.require(argument == "")
        self._mail = None
        self._send(replies.OK)

    def _noop(self, _argument: str) -> None:
        self._send(replies.OK)

    def _quit(self, argument: str) -> None:
        commands.require(argument == "")
        self._close(replies.CLOSING, is_expected=True)

    def _vrfy(self, argument: str) -> None:
        commands.require(argument != "")
        self._send(replies.CANNOT_VERIFY)  # tells nobody which addresses exist (RFC 5321 section 7.3)

    def _expn(self, _argument: str) -> None:
        raise Refusal(replies.NOT_IMPLEMENTED)

    def _help(self, _argument: str) -> None:
        self._send(replies.HELP)

    def _starttls(self, argument: str) -> None:
        commands.require(argument == "")
        if not self._offers_tls:
            raise Refusal(replies.NOT_IMPLEMENTED)
        if self._is_encrypted:
            raise Refusal(replies.TLS_TWICE)
        self._send(replies.READY_FOR_TLS)
        self._effects.append(StartTls())
        self._phase = Phase.STARTING_TLS

    # The email itself

    def _read_mail(self, data: bytes) -> bytes:
        """Returns what follows the mail."""
        mail = self._current_mail()
        content, rest = mail.body.feed(data)
        if mail.body.size_bytes > self._limits.max_message_bytes:
            self._drop_large(mail)
        elif content:
            self._effects.append(MailContent(content))
        if rest is None:
            return b""
        self._end(mail)
        return rest

    def _drop_large(self, mail: Mail) -> None:
        if not mail.is_too_large:
            mail.is_too_large = True
            mail.body.discard_rest()
            self._effects.append(DropMail())

    def _end(self, mail: Mail) -> None:
        if mail.is_too_large:
            self._phase = Phase.COMMAND
            self._mail = None
            self._refuse(replies.TOO_LARGE)
            return
        self._ask(
            AcceptMail(
                helo=self._helo_name,
                tls=self._is_encrypted,
                esmtp=self._is_extended,
                smtputf8=mail.smtputf8,
                mail_from=mail.mail_from,
                recipients=tuple(mail.recipients.values()),
            )
        )

    # Effects and state

    def _send(self, reply: bytes) -> None:
        self._effects.append(Send(reply))

    def _refuse(self, reply: bytes) -> None:
        self._send(reply)
        self._errors += 1
        if self._errors >= self._limits.max_errors:
            self._close(replies.TOO_MANY_ERRORS)

    def _ask(self, question: AskRecipient | AcceptMail) -> None:
        self._effects.append(question)
        self._phase = Phase.ASKING

    def _close(self, reply: bytes, is_expected: bool = False) -> None:
        self._send(reply)
        self._effects.append(HangUp(is_expected))
        self._phase = Phase.CLOSED
        self._input.clear()

    def _take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _forget_hello(self) -> None:
        self._helo_name = ""
        self._is_extended = False
        self._mail = None


_COMMANDS: dict[str, Callable[[SmtpDialogue, str], None]] = {
    "EHLO": SmtpDialogue._ehlo,
    "HELO": SmtpDialogue._helo,
    "MAIL": SmtpDialogue._start_mail,
    "RCPT": SmtpDialogue._rcpt,
    "DATA": SmtpDialogue._data,
    "RSET": SmtpDialogue._rset,
    "NOOP": SmtpDialogue._noop,
    "QUIT": SmtpDialogue._quit,
    "VRFY": SmtpDialogue._vrfy,
    "EXPN": SmtpDialogue._expn,
    "HELP": SmtpDialogue._help,
    "STARTTLS": SmtpDialogue._starttls,
}

"""Every answer the server gives, with its code of RFC 5321 and its status of RFC 3463."""


class Refusal(Exception):
    """A command that is answered with an error reply."""

    def __init__(self, reply: bytes) -> None:
        super().__init__(reply)
        self.reply = reply


def _reply(text: str) -> bytes:
    return text.encode("ascii") + b"\r\n"


CLOSING = _reply("221 2.0.0 Goodbye")
READY_FOR_TLS = _reply("220 2.0.0 Ready to start TLS")  # RFC 3207 section 4
HELP = _reply("214 2.0.0 EHLO HELO MAIL RCPT DATA RSET NOOP QUIT VRFY STARTTLS")
OK = _reply("250 2.0.0 OK")
SENDER_OK = _reply("250 2.1.0 Sender OK")
RECIPIENT_OK = _reply("250 2.1.5 Recipient OK")
CANNOT_VERIFY = _reply("252 2.5.2 Send mail and see")  # tells no addresses: RFC 5321 section 7.3
START_MAIL = _reply("354 End data with <CR><LF>.<CR><LF>")

SHUTTING_DOWN = _reply("421 4.3.2 Server is shutting down")
COMMAND_TIMEOUT = _reply("421 4.4.2 Command took too long")
DATA_TIMEOUT = _reply("421 4.4.2 Mail came too slowly")
TOO_MANY_ERRORS = _reply("421 4.7.0 Too many errors")
TOO_MANY_COMMANDS = _reply("421 4.7.0 Too many commands without an email")
TOO_MANY_CONNECTIONS = _reply("421 4.7.0 Too many connections")
TOO_MANY_FROM_ADDRESS = _reply("421 4.7.0 Too many connections from your address")

TRY_LATER = _reply("451 4.3.0 Try again later")
STORAGE_FULL = _reply("452 4.3.1 Storage is full, try again later")
MAILBOX_FULL = _reply("452 4.2.2 The mailbox is full, try again later")
TOO_MANY_UNKNOWN = _reply("450 4.7.1 Too many unknown recipients from your network, try again later")
COME_AGAIN = _reply("451 4.7.1 Greylisted, try again in five minutes")
TOO_MANY_RECIPIENTS = _reply("452 4.5.3 Too many recipients")  # RFC 5321 section 4.5.3.1.10

UNKNOWN_COMMAND = _reply("500 5.5.1 Unknown command")
LOGGED_IN_ALREADY = _reply("503 5.5.1 You are logged in already")
BAD_LINE = _reply("500 5.5.2 Command has bytes that do not belong there")
BARE_LINE_FEED = _reply("500 5.5.2 Lines end with CR LF")
LINE_TOO_LONG = _reply("500 5.5.2 Line too long")
BAD_ARGUMENT = _reply("501 5.5.4 Syntax error in the argument")
BAD_SENDER = _reply("501 5.1.7 Syntax error in the sender address")
BAD_RECIPIENT = _reply("501 5.1.3 Syntax error in the recipient address")
NOT_IMPLEMENTED = _reply("502 5.5.1 Command not implemented")
HELLO_FIRST = _reply("503 5.5.1 Send EHLO first")
MAIL_FIRST = _reply("503 5.5.1 Send MAIL first")
MAIL_TWICE = _reply("503 5.5.1 MAIL was already sent")
TLS_TWICE = _reply("503 5.5.1 TLS is already active")
UNKNOWN_RECIPIENT = _reply("550 5.1.1 No such mailbox")
NO_RELAY = _reply("550 5.7.1 Mail for that address is not accepted here")
NOT_AS_JUNK = _reply("550 5.7.1 Refused as junk")
TOO_LARGE = _reply("552 5.3.4 Mail is too large")
UTF8_NEEDED = _reply("553 5.6.7 Address needs SMTPUTF8")  # RFC 6531 section 3.5
OUT_OF_STEP = _reply("554 5.5.0 Wait for the answer before you send more")
MAIL_LOOPS = _reply("554 5.4.6 Mail has passed too many servers")
NO_RECIPIENTS = _reply("554 5.5.1 No valid recipients")  # RFC 5321 section 3.3
UNKNOWN_PARAMETER = _reply("555 5.5.4 Unknown parameter")


def greeting(hostname: str) -> bytes:
    return _reply(f"220 {hostname} ESMTP Postroom")


def hello(hostname: str) -> bytes:
    return _reply(f"250 {hostname}")


def extended_hello(hostname: str, keywords: list[str]) -> bytes:
    """Announces the extensions (RFC 5321 section 4.1.1.1)."""
    lines = [hostname, *keywords]
    return b"".join(_reply(f"250-{line}") for line in lines[:-1]) + _reply(f"250 {lines[-1]}")


def refused_by_policy(domain: str) -> bytes:
    """Return the refusal of RFC 7372, 3.3; the domain is one that the DNS knows."""
    return _reply(f"550 5.7.26 Refused: DMARC fails, and {domain[:253]} asks to reject such mail")


def stored(mail_id: str) -> bytes:
    return _reply(f"250 2.0.0 Stored as {mail_id}")

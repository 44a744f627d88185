"""Plays a dialogue, written as plain text, against a session.

`C: ` is a line of the client, `C> ` are raw bytes with Python escapes and no line end; client lines that
follow one another are sent at once. `S: ` is a line of the server, `A: ` an accepted mail and `A> ` its
content, `T: ` the start of TLS, `X: ` the end. `@ name=value` sets a limit, `@ tls` offers TLS, and
`@ at once` keeps the client's bytes together, where just that is the point.
"""

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postroom.net.spool import InMemory
from postroom.smtp.dialogue.effects import (
    AcceptMail,
    AskRecipient,
    DropMail,
    Effect,
    HangUp,
    MailContent,
    MailNotStored,
    MailOutcome,
    MailStored,
    Send,
    StartTls,
)
from postroom.smtp.dialogue.protocol import SmtpDialogue
from postroom.smtp.envelope import Envelope
from postroom.smtp.limits import SessionLimits
from tests.smtp.doubles import verdict_on


@dataclass
class Turn:
    """What the client sends at once, and what must come of it."""

    sent: bytes
    expected: list[str] = field(default_factory=list)


@dataclass
class Dialogue:
    limits: SessionLimits
    offers_tls: bool
    is_at_once: bool
    turns: list[Turn]


def read_dialogue(path: Path) -> Dialogue:
    limits: dict[str, Any] = {}
    words: set[str] = set()
    turns = [Turn(b"")]
    for line in path.read_text().splitlines():
        kind, rest = line[:2], line[3:]
        if kind == "@ ":
            name, _, value = line[2:].partition("=")
            if value:
                limits[name] = int(value)
            words.add(name)
        elif kind in ("C:", "C>"):
            if turns[-1].expected or len(turns) == 1:
                turns.append(Turn(b""))
            turns[-1].sent += rest.encode() + b"\r\n" if kind == "C:" else unescape(rest)
        elif line and not line.startswith("#"):
            turns[-1].expected.append(line)
    session_limits = SessionLimits(hostname="mx.postroom.test", **limits)
    return Dialogue(session_limits, "tls" in words, "at once" in words, turns)


def unescape(text: str) -> bytes:
    value = ast.literal_eval(f'b"""{text}"""')
    assert isinstance(value, bytes)
    return value


def escape(data: bytes) -> str:
    return repr(data)[2:-1] or "(nothing)"


class Player:
    """Answers the questions of a session at once, and writes down everything else."""

    def __init__(self, limits: SessionLimits, offers_tls: bool = False) -> None:
        self.session = SmtpDialogue(limits, offers_tls)
        self.mails: list[Envelope] = []
        self._content = b""
        self._transcript: list[str] = []

    def greet(self) -> list[str]:
        return self._note(self.session.greet())

    def send(self, data: bytes) -> list[str]:
        return self._note(self.session.feed(data))

    def send_in_bytes(self, data: bytes) -> list[str]:
        return [line for byte in data for line in self.send(bytes([byte]))]

    def _note(self, effects: list[Effect]) -> list[str]:
        waiting = effects
        while waiting:
            effect = waiting[0]
            waiting = waiting[1:]
            answer = self._note_one(effect)
            assert not (answer and waiting), "a question must be the last effect"
            waiting = answer or waiting
        transcript, self._transcript = self._transcript, []
        return transcript

    def _note_one(self, effect: Effect) -> list[Effect]:
        match effect:
            case Send(data):
                assert data.endswith(b"\r\n")
                self._transcript += [f"S: {line.decode()}" for line in data[:-2].split(b"\r\n")]
            case MailContent(data):
                self._content += data
            case DropMail():
                self._content = b""
            case HangUp():
                self._transcript.append("X: closed")
            case AskRecipient(address):
                return self.session.recipient_answer(verdict_on(address))
            case AcceptMail():
                return self.session.mail_answer(self._take(effect))
            case StartTls():
                self._transcript.append("T: start")
                return self.session.tls_started()
        return []

    def _take(self, mail: AcceptMail) -> MailOutcome:
        content, self._content = self._content, b""
        if mail.mail_from.startswith("full@"):
            return MailNotStored.STORAGE_FULL
        if mail.mail_from.startswith("broken@"):
            return MailNotStored.TRY_LATER
        if mail.mail_from.startswith("circling@"):
            return MailNotStored.LOOPS
        envelope = Envelope(
            id=f"mail-{len(self.mails) + 1}",
            peer="192.0.2.1",
            helo=mail.helo,
            tls=mail.tls,
            esmtp=mail.esmtp,
            smtputf8=mail.smtputf8,
            mail_from=mail.mail_from,
            recipients=mail.recipients,
            content=InMemory(content),
        )
        self.mails.append(envelope)
        names = ", ".join(recipient.address for recipient in mail.recipients)
        self._transcript.append(f"A: {envelope.protocol} <{mail.mail_from}> to {names}")
        self._transcript.append(f"A> {escape(content)}")
        return MailStored(envelope.id)

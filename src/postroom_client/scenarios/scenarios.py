"""Scenarios: written conversations with an inbox, as files to play, and made from a real thread."""

import json
import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct, field

from postroom_client.errors import PostroomError
from postroom_client.failures import place_of
from postroom_client.results import Message

INBOX = "inbox"  # how texts name the inbox under test: {inbox}
ANSWER_SECONDS = 60.0
SILENCE_SECONDS = 5.0

_ADDRESS = re.compile(r"[\w.!#$%&'*/=?^`|~-]{1,64}(?:\+[\w.-]{0,64})?@[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,11}")


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One of three: somebody writes (`from`), is answered (`expect`), or gets no answer (`silence`)."""

    sender: str | None = field(default=None, name="from")
    subject: str = ""
    body: str = ""
    cc: list[str] = []
    after_seconds: float = 0
    new_thread: bool = False
    expect: str | None = None
    within_seconds: float = ANSWER_SECONDS
    contains: list[str] = []
    lacks: list[str] = []
    recorded: str = ""  # what was answered when it was recorded; for people to read
    silence: str | None = None
    for_seconds: float = SILENCE_SECONDS


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """`people` are the names used in steps, with each one's signature."""

    people: dict[str, str]
    steps: list[Step]
    name: str = ""


def read(text: str) -> Scenario:
    try:
        scenario = msgspec.toml.decode(text, type=Scenario)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PostroomError(f"The scenario cannot be read{place_of(error)}.", code="bad_scenario") from None
    for name in scenario.people:
        if not _NAME.fullmatch(name) or name == INBOX:
            raise _bad(f"'{name[:40]}' cannot name a person: 1 to 12 of a-z, 0-9 and -, but not {INBOX}")
    for number, step in enumerate(scenario.steps, 1):
        _require_possible(scenario, step, number)
    return scenario


def _require_possible(scenario: Scenario, step: Step, number: int) -> None:
    said = [name for name in (step.sender, step.expect, step.silence) if name is not None]
    if len(said) != 1:
        raise _bad(f"step {number} needs exactly one of from, expect and silence")
    for name in (*said, *step.cc):
        if name not in scenario.people:
            raise _bad(f"step {number} names '{name[:40]}', who is not among the people")
    if step.sender is not None and not step.body:
        raise _bad(f"step {number} has no body")


def _bad(reason: str) -> PostroomError:
    return PostroomError(f"The scenario cannot be played: {reason}.", code="bad_scenario")


def fill_in(text: str, addresses: dict[str, str]) -> str:
    """Puts real addresses where the text names people."""
    for name, address in addresses.items():
        text = text.replace("{" + name + "}", address)
    return text


def record(messages: Sequence[Message], inbox_address: str) -> str:
    """Return a scenario file from a thread, without addresses.

    People become {person1}, others are invented.
    """
    inbound = [message for message in messages if message.direction == "inbound"]
    names: dict[str, str] = {}
    for message in inbound:
        names.setdefault(_address_of(message.from_addr), f"person{len(names) + 1}")
    disguise = _Disguise({**names, inbox_address.lower(): INBOX})
    lines = [f"name = {_quoted('Recorded: ' + disguise.apply(messages[0].subject if messages else ''))}", ""]
    lines += ["[people]", *(f'{name} = "Person {name[6:]}"' for name in names.values())]
    for message in messages:
        lines += _recorded_step(message, names, disguise)
    return "\n".join(lines) + "\n"


def _recorded_step(message: Message, names: dict[str, str], disguise: "_Disguise") -> list[str]:
    text = _long(disguise.apply(message.reply_text or message.body_text or "(no text)"))
    if message.direction == "inbound":
        name = names[_address_of(message.from_addr)]
        subject = _quoted(disguise.apply(message.subject) or "(no subject)")
        return ["", "[[steps]]", f'from = "{name}"', f"subject = {subject}", f"body = {text}"]
    answered = [names[address] for address in _addresses_in(message.header_to) if address in names]
    if not answered:
        return []
    return ["", "[[steps]]", f'expect = "{answered[0]}"', f"recorded = {text}"]


class _Disguise:
    """The same invented address for the same real one."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._invented: dict[str, str] = {}

    def apply(self, text: str) -> str:
        return _ADDRESS.sub(self._replace, text)

    def _replace(self, found: re.Match[str]) -> str:
        address = found[0].lower()
        if address in self._names:
            return "{" + self._names[address] + "}"
        return self._invented.setdefault(address, f"other{len(self._invented) + 1}@example.com")


def _addresses_in(text: str) -> list[str]:
    return [found.lower() for found in _ADDRESS.findall(text)]


def _address_of(text: str) -> str:
    found = _addresses_in(text)
    return found[-1] if found else text.lower()


def _quoted(text: str) -> str:
    """Return a TOML string: like JSON's, but with characters escaped that TOML forbids."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _long(text: str) -> str:
    """Return a TOML text of several lines, for people to read."""
    lines = [_quoted(line)[1:-1] for line in text.replace("\r\n", "\n").split("\n")]
    return '"""\n' + "\n".join(lines) + '"""'

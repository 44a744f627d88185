"""Plays a scenario against an inbox: its people get their own inboxes, write, and wait for answers."""

import secrets
import time
from collections.abc import Callable

from msgspec import Struct

from postroom_client.client import Client
from postroom_client.errors import PostroomError
from postroom_client.limits import LONGEST_PAGE
from postroom_client.results import Inbox, Message
from postroom_client.scenarios.scenarios import INBOX, Scenario, Step, fill_in

LOOK_AGAIN_SECONDS = 2.0


class StepResult(Struct, rename="camel", frozen=True):
    number: int
    what: str
    passed: bool
    reason: str
    seconds: float


class Report(Struct, rename="camel", frozen=True):
    name: str
    passed: bool
    steps: list[StepResult]


class Mismatch(Exception):
    """The agent did not do what the step expects."""


class Person:
    """A person of the scenario, with an inbox and the email received so far."""

    def __init__(self, client: Client, inbox: Inbox, tested: Inbox) -> None:
        self.inbox = inbox
        self._client = client
        self._tested = tested
        self._seen: set[str] = set()
        self._thread_id: str | None = None

    def write(self, subject: str, body: str, cc: list[str], *, new_thread: bool) -> None:
        if self._thread_id is not None and not new_thread:
            self._client.reply(self._thread_id, body, cc=cc)
            return
        subject = subject or "(no subject)"
        sent = self._client.send(self.inbox.id, to=self._tested.address, subject=subject, body=body, cc=cc)
        self._thread_id = sent.thread_id

    def next_answer(self, seconds: float) -> Message | None:
        """Return the oldest unseen email from the inbox under test."""
        deadline = time.monotonic() + seconds
        while True:
            found = self._client.list_messages(self.inbox.id, direction="inbound", limit=LONGEST_PAGE).data
            new = [each for each in found if each.id not in self._seen and self._is_answer(each)]
            if new:
                self._seen.add(new[-1].id)
                self._thread_id = new[-1].thread_id
                return new[-1]
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            after = found[0].id if found else None
            self._client.wait(self.inbox.id, timeout=min(left, LOOK_AGAIN_SECONDS), after=after)

    def _is_answer(self, message: Message) -> bool:
        return self._tested.address.lower() in message.from_addr.lower()


def play(
    client: Client, scenario: Scenario, inbox_id: str, on_step: Callable[[StepResult], None] | None = None
) -> Report:
    """Stops at the first step that fails: what follows would only repeat it."""
    tested = client.get_inbox(inbox_id)
    people: dict[str, Person] = {}
    try:
        for name, signature in scenario.people.items():
            mailbox = f"sim-{secrets.token_hex(4)}-{name.strip('-')}"
            inbox = client.create_inbox(mailbox, display_name=signature or None)
            people[name] = Person(client, inbox, tested)
        return _play_steps(scenario, people, tested, on_step)
    finally:
        for person in people.values():
            client.delete_inbox(person.inbox.id)


def _play_steps(
    scenario: Scenario,
    people: dict[str, Person],
    tested: Inbox,
    on_step: Callable[[StepResult], None] | None,
) -> Report:
    addresses = {INBOX: tested.address, **{name: person.inbox.address for name, person in people.items()}}
    results: list[StepResult] = []
    for number, step in enumerate(scenario.steps, 1):
        results.append(_play_step(number, step, people, addresses))
        if on_step is not None:
            on_step(results[-1])
        if not results[-1].passed:
            break
    return Report(scenario.name, all(result.passed for result in results), results)


def _play_step(number: int, step: Step, people: dict[str, Person], addresses: dict[str, str]) -> StepResult:
    began, reason = time.monotonic(), ""
    try:
        _act(step, people, addresses)
    except (Mismatch, PostroomError) as error:
        reason = str(error)
    return StepResult(number, _what(step), not reason, reason, round(time.monotonic() - began, 3))


def _act(step: Step, people: dict[str, Person], addresses: dict[str, str]) -> None:
    time.sleep(step.after_seconds)
    if step.sender is not None:
        cc = [addresses[name] for name in step.cc]
        subject, body = fill_in(step.subject, addresses), fill_in(step.body, addresses)
        people[step.sender].write(subject, body, cc, new_thread=step.new_thread)
    elif step.expect is not None:
        answer = people[step.expect].next_answer(step.within_seconds)
        _require_expected(step, answer, addresses)
    elif step.silence is not None and people[step.silence].next_answer(step.for_seconds) is not None:
        raise Mismatch(f"{step.silence} got an email")


def _require_expected(step: Step, answer: Message | None, addresses: dict[str, str]) -> None:
    if answer is None:
        raise Mismatch(f"no reply to {step.expect} within {step.within_seconds:g} s")
    text = f"{answer.subject}\n{answer.reply_text or answer.body_text}".lower()
    for words in step.contains:
        if fill_in(words, addresses).lower() not in text:
            raise Mismatch(f"the reply does not contain '{words}'")
    for words in step.lacks:
        if fill_in(words, addresses).lower() in text:
            raise Mismatch(f"the reply contains '{words}'")


def _what(step: Step) -> str:
    if step.sender is not None:
        return f"{step.sender} writes"
    return f"{step.expect} is answered" if step.expect is not None else f"{step.silence} gets nothing"

"""The context of a command: its settings, the client, and output for people or programs."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from postroom_client.cli import output
from postroom_client.cli.safe_text import one_line
from postroom_client.cli.words import names

if TYPE_CHECKING:
    from postroom_client.client import Client
    from postroom_client.errors import PostroomError
    from postroom_client.settings import Flags, Settings
    from postroom_client.transport.exchange import Call, Patience, Steps
    from postroom_client.transport.wire import OnProgress

T = TypeVar("T")
FAILED, REFUSED, TOO_MANY = 1, 4, 5
LONGEST_WAIT_SECONDS = 5


class CommandContext:
    """The settings, the client and the output of one command. Its parts are made on first use."""

    def __init__(self, flags: "Flags", *, as_json: bool | None) -> None:
        self.wants_json = as_json is True
        self.is_json = not output.is_terminal() if as_json is None else as_json
        self.flags = flags
        self._settings: Settings | None = None
        self._client: Client | None = None
        self.was_answered = False

    @property
    def settings(self) -> "Settings":
        from postroom_client.settings import resolve

        if self._settings is None:
            self._settings = resolve(self.flags, os.environ)
        return self._settings

    @property
    def client(self) -> "Client":
        from postroom_client.client import Client
        from postroom_client.errors import Unauthorized

        if self._client is None:
            if not self.settings.api_key:
                raise Unauthorized(f"There is no API key for {self.settings.base_url}.")
            self._client = Client(self.settings.api_key, self.settings.base_url, patience=patience())
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    @property
    def is_from_profile(self) -> bool:
        """Return whether server and key are the profile's, so that a default inbox can be stored there."""
        from postroom_client import profiles

        profile = profiles.load().find(self.settings.profile)
        used = (self.settings.base_url, self.settings.api_key)
        return profile is not None and (profile.base_url.rstrip("/"), profile.api_key) == used

    def require_inbox_id(self, flag: str | None) -> str:
        given = flag or self.settings.inbox_id
        if not given:
            raise typer.BadParameter(
                "no inbox is given and there is no default: pass --inbox-id, or postroom inboxes use INBOX_ID"
            )
        return self.find_inbox_id(given)

    def find_inbox_id(self, given: str) -> str:
        """Return the id of an inbox given by id, address, name before the @, or the name in From."""
        return names.find(self.ask, "inbox_id", given)

    def ask(self, work: "Call[T] | Steps[T]") -> T:
        return self.carry_out(work, None)[1]

    def show(self, work: "Call[T] | Steps[T]", human: Callable[[T], None]) -> T:
        """Run the work and show its result: the server's JSON, or what `human` prints."""
        raw, result = self.carry_out(work, None)
        self.show_result(raw, result, human)
        return result

    def show_result(self, raw: bytes, result: T, human: Callable[[T], None]) -> None:
        if self.is_json:
            output.print_json(raw)
        else:
            human(result)

    def carry_out(self, work: "Call[T] | Steps[T]", on_progress: "OnProgress | None") -> tuple[bytes, T]:
        from postroom_client.transport.exchange import Call

        if isinstance(work, Call):
            reply = self.client.exchange(work, on_progress)
            self.was_answered = True
            return reply.content, work.read(reply)
        raw, result = b"", None
        while True:
            try:
                call = work.send(result)
            except StopIteration as end:
                return raw, end.value
            raw, result = self.carry_out(call, on_progress)

    def done(self, record: dict[str, object], sentence: str) -> None:
        """Show that a call has worked whose answer has no body."""
        if self.is_json:
            output.print_json(output.encode(record))
        else:
            output.note(one_line(sentence))

    def fail(self, error: "PostroomError") -> typer.Exit:
        if self.is_json:
            output.note(output.encode(error.to_json()).decode())
        else:
            output.note(f"Error: {one_line(error.message)}")
            for line in next_steps(error):
                output.note(line)
        return typer.Exit(exit_code(error))


def patience() -> "Patience":
    """Return how long calls try: a person waits, so once more, and through short rate limits only."""
    from postroom_client.transport.exchange import Patience

    return Patience(attempts=2, longest_wait_seconds=LONGEST_WAIT_SECONDS)


def exit_code(error: "PostroomError") -> int:
    if error.status == 401 or error.code == "forbidden":
        return REFUSED
    return TOO_MANY if error.status == 429 else FAILED


def next_steps(error: "PostroomError") -> list[str]:
    if error.code == "connection_failed":
        return ["Is the server running? Start it with: postroom serve", "See what is wrong: postroom doctor"]
    if error.status == 401:
        return ["Set a key: postroom login, or POSTROOM_API_KEY"]
    if error.retry_after is not None:
        return [f"Try again in {error.retry_after} s."]
    return []

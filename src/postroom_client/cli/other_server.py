"""Offer another profile whose server runs, when the server of the profile in use is gone."""

from typing import TYPE_CHECKING

import typer

from postroom_client.cli import output
from postroom_client.cli.safe_text import one_line

if TYPE_CHECKING:
    from postroom_client.cli.context import CommandContext
    from postroom_client.errors import PostroomError
    from postroom_client.profiles import Profile, Profiles

MOST_TRIED = 5
PATIENCE_SECONDS = 3.0


def choose(context: "CommandContext", error: "PostroomError") -> str | None:
    """Return the profile to use from now on: one whose server answers, if a person agrees to it.

    Only where the command took server and key from its profile, and the server answered nothing yet.
    """
    if error.code not in ("connection_failed", "unauthorized") or context.is_json or context.was_answered:
        return None
    if not output.can_ask() or not context.is_from_profile:
        return None
    from postroom_client import profiles

    known, name = profiles.load(), context.settings.profile
    found = _running(known, name)
    if found is None:
        return None
    other, profile = found
    problem = "does not answer" if error.code == "connection_failed" else "does not know the key"
    output.note(one_line(f"{context.settings.base_url} (profile '{name}') {problem}."))
    question = f"{profile.base_url} (profile '{other}') answers. Use it from now on?"
    if not typer.confirm(one_line(question), default=True, err=True):
        return None
    profiles.save(known.with_profile(other, profile, make_current=True))
    return other


def _running(known: "Profiles", name: str) -> "tuple[str, Profile] | None":
    others = [each for each in known.profiles.items() if each[0] != name]
    return next((each for each in others[::-1][:MOST_TRIED] if _answers(each[1])), None)


def _answers(profile: "Profile") -> bool:
    from dataclasses import replace

    from postroom_client.calls import calls
    from postroom_client.client import Client
    from postroom_client.errors import PostroomError
    from postroom_client.transport.exchange import Patience

    try:
        with Client(profile.api_key, profile.base_url, patience=Patience(attempts=1)) as client:
            client.run(replace(calls.me(), timeout_seconds=PATIENCE_SECONDS))
    except PostroomError:
        return False
    return True

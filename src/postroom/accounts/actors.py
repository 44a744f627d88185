"""Who did something: a key, a user, a session, a reviewer by mail, a rule, or the server itself."""

import msgspec
from msgspec import Struct

KEY, USER, SESSION, REVIEWER, SYSTEM = "key", "user", "session", "reviewer", "system"
RULE = "rule"  # for email that comes in


class Actor(Struct, frozen=True):
    type: str
    id: str
    name: str


THE_SERVER = Actor(SYSTEM, "postroom", "Postroom")
THE_OPERATOR = Actor(SYSTEM, "operator", "The operator's command")


def encode(actor: Actor) -> str:
    return msgspec.json.encode(actor).decode()


def decode(stored: str | None) -> Actor | None:
    return None if stored is None else msgspec.json.decode(stored, type=Actor)

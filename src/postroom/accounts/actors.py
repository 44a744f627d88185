"""Who did something: a key, a user, a person with a session, a reviewer by mail, or the server itself."""

import msgspec
from msgspec import Struct

KEY, USER, SESSION, REVIEWER, SYSTEM = "key", "user", "session", "reviewer", "system"


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

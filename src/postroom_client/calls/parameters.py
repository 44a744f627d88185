"""The parameters of an operation, as commands need them. Imports little: every start loads it."""

from typing import Literal, NamedTuple

Kind = Literal[
    "text",
    "integer",
    "number",
    "flag",
    "switch",
    "choice",
    "texts",
    "addresses",
    "pairs",
    "moment",
    "day",
    "files",
    "object",
    "objects",
]


class Parameter(NamedTuple):
    """`clears`: it may be set to nothing, which an empty text does. `part_of` names the argument that this
    is one field of."""

    name: str
    kind: Kind
    help: str = ""
    is_required: bool = False
    default: str | int | float | bool | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    clears: bool = False
    part_of: str = ""

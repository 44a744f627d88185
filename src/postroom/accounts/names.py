"""Names that people choose for accounts, keys and inboxes."""

import re
from typing import Annotated

from msgspec import Meta

from postroom.errors import BadRequest
from postroom.limits import NAME_CHARACTERS

# Includes characters that change the text direction: a name could look like another.
_CONTROLS = "\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069"
PATTERN = f"^[^{_CONTROLS}]*$"

Name = Annotated[
    str,
    Meta(
        max_length=NAME_CHARACTERS,
        description="A name for people.",
        examples=["ci-runner"],
        extra_json_schema={"pattern": PATTERN},
    ),
]
GIVEN_PATTERN = f"^[^{_CONTROLS}]*[^{_CONTROLS}\\s][^{_CONTROLS}]*$"

_clean = re.compile(f"[^{_CONTROLS}\\ud800-\\udfff]*")  # JSON has no lone surrogate, an argument may


def is_clean(name: str) -> bool:
    """Return whether a name is valid. fullmatch, because `$` would let a line break at the end pass."""
    return len(name) <= NAME_CHARACTERS and _clean.fullmatch(name) is not None


def require_clean(name: str, field: str) -> None:
    if not is_clean(name):
        raise BadRequest(
            f"{field} must be at most {NAME_CHARACTERS} characters, without control characters.", field=field
        )


def require_given(name: str, field: str) -> None:
    require_clean(name, field)
    if not name.strip():
        raise BadRequest(f"{field} must not be empty.", field=field)

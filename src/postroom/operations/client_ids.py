"""An id that the client chose: what is created with the same one again is what is there."""

import re
from typing import Annotated, Any

from msgspec import Meta

from postroom.errors import BadRequest
from postroom.limits import VISIBLE_CHARACTERS

_visible = re.compile(rf"[!-~]{{1,{VISIBLE_CHARACTERS}}}")

# Described here, checked by `require_valid`, which says in words what is wrong.
OwnId = Annotated[
    str,
    Meta(
        max_length=VISIBLE_CHARACTERS,
        description="Your id for it. The same id again returns the existing one (200), unchanged.",
        extra_json_schema={"pattern": f"^{_visible.pattern}$"},
    ),
]


class AlreadyThere(Exception):
    """Raised by an operation that would create it twice: nothing is written, and the answer is 200."""

    def __init__(self, item: Any) -> None:
        super().__init__()
        self.item = item


def require_valid(client_id: str | None) -> None:
    if client_id is not None and not _visible.fullmatch(client_id):
        raise BadRequest(
            f"clientId must be 1 to {VISIBLE_CHARACTERS} visible ASCII characters, without spaces.",
            field="clientId",
        )

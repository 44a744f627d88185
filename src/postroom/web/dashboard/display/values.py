"""What handlers of the interface answer, as plain values: the pages show what the interface says."""

from typing import Any

import msgspec


def plain(answer: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(answer))

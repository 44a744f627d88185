"""What the server says of itself, and every error."""

from typing import Literal

from msgspec import Struct


class Health(Struct, rename="camel", frozen=True):
    status: Literal["ok"] = "ok"


class Workers(Struct, rename="camel", frozen=True):
    expected: int
    running: int
    restarts: int


class SearchProgress(Struct, rename="camel", frozen=True):
    """`earlierPercent` is below 100 while mail from before an upgrade is gone through."""

    waiting: int
    earlier_percent: int


class Readiness(Struct, rename="camel", frozen=True):
    workers: Workers
    search: SearchProgress
    status: Literal["ok"] = "ok"


class Error(Struct, rename="camel", frozen=True, omit_defaults=True):
    error: str
    message: str
    field: str = ""
    request_id: str = ""

"""What requests carry about finding: the queries of search and usage."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from postroom.fields import InboxFilter, Limit, PodFilter


class SearchQuery(Struct, frozen=True):
    q: Annotated[
        str,
        Meta(
            description='Words, "phrases", -not, a OR b, beginnings*, from: to: subject: label: in: has: is:'
            " before: after:",
            examples=["invoice from:billing after:2026-01-01", '"purchase order" -draft has:attachment'],
        ),
    ]
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")
    limit: Limit = 20
    cursor: Annotated[str, Meta(description="`next` of the page before.")] | None = None
    include: (
        Annotated[Literal["trash"], Meta(description="Also what a mail program moved to Trash.")] | None
    ) = None

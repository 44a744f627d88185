"""What requests about policies and the audit log carry."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.fields import AskedMoment, Limit, Offset


class AuditQuery(Struct, frozen=True):
    since: AskedMoment | None = None
    until: AskedMoment | None = None
    actor: Annotated[str, Meta(description="The id of a key, a session or a reviewer.")] | None = None
    action: Annotated[str, Meta(description="What was done, such as key.created.")] | None = None
    limit: Limit = 50
    offset: Offset = 0

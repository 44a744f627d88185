"""The audit log over REST."""

from postroom.accounts import audit
from postroom.fields import read_asked
from postroom.web.call import Call
from postroom.web.interface.bodies.tenant_body import AuditQuery
from postroom.web.interface.shapes import tenant_shapes


async def list_audit(call: Call, query: AuditQuery) -> tenant_shapes.AuditPage:
    """List what was decided, and what keys tried and may not, newest first"""
    found, total = await call.resources.db.read(
        audit.list_within,
        call.reach,
        read_asked(query.since, "since"),
        read_asked(query.until, "until"),
        query.actor,
        query.action,
        query.limit,
        query.offset,
    )
    return tenant_shapes.AuditPage([tenant_shapes.AuditEntry.of(entry) for entry in found], total)

"""`postroom domains get` without an id: every domain that is served here, and its DNS records."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.commands.database import with_database
from postroom.config import Config
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.plain.rows import run
from postroom_client.cli.plain.table import ROWS

if TYPE_CHECKING:
    from postroom.storage.database import Database, Tx


@command(GROUPS["domains"], "get")
def show_domains(
    context: CommandContext, domain_id: Annotated[str | None, typer.Argument(help="dom_…")] = None
) -> None:
    """Show a domain and its DNS records; without an id, on the server's machine, all that is served there."""
    if domain_id is not None:
        run(context, ROWS["domains get"], {"domain_id": domain_id})
        return
    from postroom.clock import SystemClock
    from postroom.first_start import make_service_key

    async def work(db: "Database", config: Config) -> list[dict[str, Any]]:
        now = SystemClock().now()
        await make_service_key(db, config.domain, now)
        return await db.read(_describe_domains, config.domain, now)

    found = with_database(work)
    if context.is_json:
        print(json.dumps({"data": found, "total": len(found)}))
        return
    from postroom.deliverability.findings import zone_line

    for domain in found:
        print(f"{domain['domain']} ({domain['status']})")
        for record in domain["records"]:
            note = "" if record["required"] else " (recommended)"
            line = zone_line(record["name"], record["type"], record["value"])
            print(f"\n  # {record['purpose']}{note}\n  {line}")
        print()


def _describe_domains(tx: "Tx", service_domain: str, now: int) -> list[dict[str, Any]]:
    from postroom.accounts import dkim_keys, domains

    owners = [(domains.SERVICE, service_domain, "the service's own")] + [
        (domain.account_id, domain.name, "verified" if domain.verified_at else "not verified yet")
        for domain in domains.list_all(tx)
    ]
    shown = []
    for owner, name, status in owners:
        keys = dkim_keys.list_of(tx, owner, name)
        records = [
            {
                "type": record.type,
                "name": record.name,
                "value": record.value,
                "purpose": record.purpose,
                "required": record.is_required,
            }
            for record in domains.records(name, service_domain, keys, now)
        ]
        shown.append({"domain": name, "status": status, "records": records})
    return shown

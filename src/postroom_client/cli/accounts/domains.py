"""postroom domains …"""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, command, group
from postroom_client.cli.desk import FAILED, Desk

if TYPE_CHECKING:
    from postroom_client.results import DnsRecord, Domain, Page

app = group("Domains of your own, and their DNS records.")

DomainArgument = Annotated[str, typer.Argument(help="Id of the domain, dom_…", show_default=False)]


@command(app, "add")
def add(
    desk: Desk,
    domain: Annotated[str, typer.Argument(help="Its name, as mail.example.com")],
    pod_id: Annotated[str | None, typer.Option(help="Of this pod: its id or clientId.")] = None,
) -> None:
    """Add a domain and show the DNS records to set."""
    from postroom_client.calls import calls

    desk.show(calls.add_domain(domain, pod_id=pod_id), _show_domain)


@command(app, "list")
def list_all(desk: Desk, limit: Limit = 50, offset: Offset = 0) -> None:
    """List the domains, newest first."""
    from postroom_client.calls import calls

    desk.show(calls.list_domains(limit=limit, offset=offset), _show_page)


@command(app, "show")
def show(desk: Desk, domain_id: DomainArgument) -> None:
    """Show a domain and its DNS records."""
    from postroom_client.calls import calls

    desk.show(calls.get_domain(domain_id), _show_domain)


@command(app, "verify")
def verify(desk: Desk, domain_id: DomainArgument) -> None:
    """Look the records up in DNS. Exits with 1 when the domain is not verified."""
    from postroom_client.calls import calls

    domain = desk.show(calls.verify_domain(domain_id), _show_domain)
    if domain.status != "verified":
        raise typer.Exit(FAILED)


@command(app, "delete")
def delete(
    desk: Desk,
    domain_id: DomainArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a domain that no inbox uses."""
    from postroom_client.calls import calls

    output.confirm(f"Delete {domain_id}?", yes=yes)
    desk.ask(calls.delete_domain(domain_id))
    desk.done({"id": domain_id, "deleted": True}, f"{domain_id} is deleted.")


def _show_page(page: "Page[Domain]") -> None:
    if not page.data:
        output.note("No domain of your own yet. Add one: postroom domains add NAME")
        return
    rows = [(item.id, item.domain, item.status, output.ago(item.created_at)) for item in page.data]
    output.print_human(output.table(("ID", "DOMAIN", "STATUS", "ADDED"), rows))
    output.note_rest(page)


def _show_domain(domain: "Domain") -> None:
    """Records are printed whole, never folded, so that they can be copied."""
    pairs = [("id", domain.id), ("domain", domain.domain), ("status", domain.status)]
    output.print_human(output.record(pairs))
    for record in domain.records:
        output.print_text(f"\n{_describe(record)}")
    if domain.status != "verified":
        output.note(f"\nWhen the records are set: postroom domains verify {domain.id}")


def _describe(record: "DnsRecord") -> str:
    need = "required" if record.required else "recommended"
    found = {True: ", found", False: ", not found", None: ""}[record.found]
    return f"{record.type}  {record.name}\n  {record.value}\n  {record.purpose} ({need}{found})"

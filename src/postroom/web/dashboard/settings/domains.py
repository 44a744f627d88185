"""Domains: each record as wanted and as found, and how other servers reach this one."""

from typing import Any, Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.deliverability.findings import zone_line
from postroom.operations import domains
from postroom.operations.domain_reports import ReportQuery, get_domain_reports
from postroom.web import client_configuration
from postroom.web.api import domains as api
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.display.plots import bars
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.page_context import PageContext
from postroom.web.dashboard.paging import OffsetQuery
from postroom.web.dashboard.settings.pods import OutboundForm

PATH = "/app/settings/domains"
STARTED = "Warm-up started. The daily limit grows."
ENDED = "Warm-up ended. Waiting emails are sent now."


class WarmUpForm(Struct, frozen=True):
    on: Literal["yes", "no"]


async def show_domains(context: PageContext, query: OffsetQuery) -> Response:
    page = await context.ask(domains.list_domains, query=query.to_page())
    return await show(context, page["data"], page["total"])


async def show(
    context: PageContext, found: list[dict[str, Any]], total: int, health: dict[str, Any] | None = None
) -> Response:
    """Show the domains. `health` has their checks by id, if they were made."""
    return await context.show(
        "domains.html",
        "settings",
        title="Domains",
        domains=found,
        health=health or {},
        total=total,
        smtp=context.call.resources.config.smtp,
        service=context.call.resources.config.domain,
    )


add_domain = runs(domains.create_domain, PATH, "{body.domain} is added. Set its records, then check them.")


set_outbound = runs(
    domains.change_domain,
    PATH,
    "Saved. This domain now sends through this relay.",
    OutboundForm,
    lambda form: {"body": domains.DomainChange(form.outbound.strip() or None)},
)
set_warm_up = runs(
    domains.change_domain,
    PATH,
    lambda form: STARTED if form.on == "yes" else ENDED,
    WarmUpForm,
    lambda form: {"body": domains.DomainChange(warm_up=form.on == "yes")},
)
delete_domain = undo.delayed(domains.delete_domain, PATH, "Deleting the domain in {seconds} seconds.")


async def check_domain(context: PageContext, domain_id: str) -> Response:
    checked = await context.ask(api.verify_domain, domain_id=domain_id)
    health = (await context.ask(api.get_domain_health, domain_id=domain_id))["data"]
    page = await context.ask(domains.list_domains, query=OffsetQuery().to_page())
    shown = [checked if each["id"] == domain_id else each for each in page["data"]]
    return await show(context, shown, page["total"], {domain_id: health})


rotate_dkim = runs(api.rotate_dkim, PATH, "Created new keys. Publish their records, then select Check.")


async def show_reports(context: PageContext, domain_id: str) -> Response:
    domain = await context.ask(domains.get_domain, domain_id=domain_id)
    reports = await context.ask(get_domain_reports, domain_id=domain_id, query=ReportQuery())
    days = reports["days"]
    passed, failed = ([day[name] for day in days] for name in ("passed", "failed"))
    return await context.show(
        "domain_reports.html",
        "settings",
        title=f"Reports for {domain['domain']}",
        domain=domain,
        reports=reports,
        plot=bars(passed, "Emails by day", failed, labels=[day["day"] for day in days]),
    )


async def download_zone(context: PageContext, domain_id: str) -> Response:
    domain = await context.ask(domains.get_domain, domain_id=domain_id)
    lines = [zone_line(each["name"], each["type"], each["value"]) for each in domain["records"]]
    lines += client_configuration.zone_lines(domain["domain"], context.call.resources.config)
    headers = {**HEADERS, "Content-Disposition": f"attachment; filename={domain['domain']}.zone"}
    return Response("\n".join([*lines, ""]), media_type="text/plain; charset=utf-8", headers=headers)

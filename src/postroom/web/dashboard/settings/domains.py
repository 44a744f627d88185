"""Domains: each record as wanted and as found, and how other servers reach this one."""

from typing import Any, Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.deliverability import mail_programs
from postroom.deliverability.findings import zone_line
from postroom.operations import domains
from postroom.operations.ways.domain_reports import ReportQuery, get_domain_reports
from postroom.web.api.accounts import domains as api
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.plots import bars
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.settings.paging import OffsetQuery
from postroom.web.dashboard.settings.pods import OutboundForm

PATH = "/app/settings/domains"


class WarmUpForm(Struct, frozen=True):
    on: Literal["yes", "no"]


async def show_domains(desk: Desk, query: OffsetQuery) -> Response:
    page = await desk.ask(domains.list_domains, query=query.to_page())
    return await show(desk, page["data"], page["total"])


async def show(
    desk: Desk, found: list[dict[str, Any]], total: int, health: dict[str, Any] | None = None
) -> Response:
    """`health` has the checks of domains by id, if they were made."""
    return await desk.show(
        "domains.html",
        "settings",
        title="Domains",
        domains=found,
        health=health or {},
        total=total,
        smtp=desk.call.resources.config.smtp,
        service=desk.call.resources.config.domain,
    )


async def add_domain(desk: Desk, body: domains.NewDomain) -> Response:
    await desk.run(domains.create_domain, body=body)
    return go(PATH, f"{body.domain} is added. Set its records, then check them.")


async def set_outbound(desk: Desk, domain_id: str, body: OutboundForm) -> Response:
    change = domains.DomainChange(body.outbound.strip() or None)
    await desk.run(domains.change_domain, domain_id=domain_id, body=change)
    return go(PATH, "Mail of this domain is sent that way from now on.")


async def set_warm_up(desk: Desk, domain_id: str, body: WarmUpForm) -> Response:
    change = domains.DomainChange(warm_up=body.on == "yes")
    await desk.run(domains.change_domain, domain_id=domain_id, body=change)
    told = "Warm-up is on: its daily limit grows." if change.warm_up else "Warm-up is off: no daily limit."
    return go(PATH, told)


delete_domain = undo.delayed(domains.delete_domain, PATH, "The domain is deleted in {seconds} seconds.")


async def check_domain(desk: Desk, domain_id: str) -> Response:
    checked = await desk.ask(api.verify_domain, domain_id=domain_id)
    health = (await desk.ask(api.get_domain_health, domain_id=domain_id))["data"]
    page = await desk.ask(domains.list_domains, query=OffsetQuery().to_page())
    shown = [checked if each["id"] == domain_id else each for each in page["data"]]
    return await show(desk, shown, page["total"], {domain_id: health})


async def rotate_dkim(desk: Desk, domain_id: str) -> Response:
    await desk.perform(api.rotate_dkim, domain_id=domain_id)
    return go(PATH, "New keys wait for their records. Publish those, then check.")


async def show_reports(desk: Desk, domain_id: str) -> Response:
    domain = await desk.ask(domains.get_domain, domain_id=domain_id)
    reports = await desk.ask(get_domain_reports, domain_id=domain_id, query=ReportQuery())
    days = reports["days"]
    passed, failed = ([day[name] for day in days] for name in ("passed", "failed"))
    return await desk.show(
        "domain_reports.html",
        "settings",
        title=f"Reports about {domain['domain']}",
        domain=domain,
        reports=reports,
        plot=bars(passed, "Mails by day", failed, labels=[day["day"] for day in days]),
    )


async def download_zone(desk: Desk, domain_id: str) -> Response:
    domain = await desk.ask(domains.get_domain, domain_id=domain_id)
    lines = [zone_line(each["name"], each["type"], each["value"]) for each in domain["records"]]
    lines += mail_programs.zone_lines(domain["domain"], desk.call.resources.config)
    headers = {**HEADERS, "Content-Disposition": f"attachment; filename={domain['domain']}.zone"}
    return Response("\n".join([*lines, ""]), media_type="text/plain; charset=utf-8", headers=headers)

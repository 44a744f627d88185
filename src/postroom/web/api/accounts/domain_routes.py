"""The routes about domains, and about how their mail fares."""

from postroom import errors
from postroom.accounts.permissions import MANAGING, READING
from postroom.operations import domains
from postroom.operations.ways import deliverability, domain_reports
from postroom.web.api.accounts import domains as checks
from postroom.web.routing import POD, Route

DOMAIN = (errors.InvalidDomain, errors.DomainTaken)
TAKEN = (errors.DomainTaken,)
NOTHING_TO_DO = (errors.NothingToDo,)

ROUTES = (
    Route("GET", "/v1/domains", domains.list_domains, POD, READING),
    Route(
        "POST",
        "/v1/domains",
        domains.create_domain,
        POD,
        MANAGING,
        201,
        DOMAIN,
        prepare=checks.make_dkim_key,
    ),
    Route("GET", "/v1/domains/{domain_id}", domains.get_domain, POD, READING),
    Route("PATCH", "/v1/domains/{domain_id}", domains.change_domain, POD, MANAGING),
    Route("GET", "/v1/domains/{domain_id}/health", checks.get_domain_health, POD, READING),
    Route("GET", "/v1/domains/{domain_id}/reports", domain_reports.get_domain_reports, POD, READING),
    Route("DELETE", "/v1/domains/{domain_id}", domains.delete_domain, POD, MANAGING, 204, TAKEN),
    Route("POST", "/v1/domains/{domain_id}/verify", checks.verify_domain, POD, MANAGING, 200, TAKEN),
    Route(
        "POST", "/v1/domains/{domain_id}/rotate-dkim", checks.rotate_dkim, POD, MANAGING, 200, NOTHING_TO_DO
    ),
    Route("GET", "/v1/deliverability", deliverability.get_deliverability, POD, READING),
)

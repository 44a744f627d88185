"""The steps of `postroom setup`, one after the other; each leaves a finding."""

import asyncio
import json
import os
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import typer
from msgspec.structs import replace

from postroom.certificates.wanted import is_public_name
from postroom.commands.setup_mail import FirstMail
from postroom.commands.setup_server import SetupServer
from postroom.config import SETTINGS_FILE, Config, ConfigError, load
from postroom.couriers.webhook import HttpCourier, WebhookLimits
from postroom.deliverability import server_checks
from postroom.deliverability.findings import HealthCheck
from postroom.dns_providers.choose import open_provider
from postroom.dns_providers.zone import DnsProviderError
from postroom.host_setup import questions, reachability, records, settings_file
from postroom.host_setup.questions import SetupOptions
from postroom.host_setup.reachability import HostAddresses
from postroom.host_setup.records import SetRecordOutcome, WantedRecord
from postroom.host_setup.settings_file import Host
from postroom.host_setup.systemd import Service, SetupFailed, is_hidden
from postroom.net.dns import Resolver
from postroom.net.relay import parse_ways
from postroom_client.cli.doctor_checks import Finding
from postroom_client.errors import PostroomError

T = TypeVar("T")
NEEDED = ("A", "AAAA", "MX")  # without these and the DKIM key no email comes, or none is believed
PROVIDER_SECONDS = 30
PROVIDER_FAILED = (
    "Give another key in POSTROOM_DNS_TOKEN, or another provider with --dns, and run the same command again."
    " Or set these records yourself."
)
NO_SETTINGS = (
    "Run this as root, with sudo: it writes /etc/postroom.env. If the settings are in the environment, as in"
    " Kubernetes, POSTROOM_DOMAIN there is {}: set it to {}."
)
SET_THIS = "Set: "  # before a line for a zone file
VERDICTS = {"ok": "pass", "missing": "fail", "wrong": "fail", "unknown": "warn"}


class SetupSteps:
    def __init__(
        self, service: Service, options: SetupOptions, inbox: str, addresses: Sequence[str], replaces: bool
    ) -> None:
        self._service, self._options = service, options
        self._inbox, self._given, self._replaces = inbox, addresses, replaces
        self._addresses = HostAddresses()
        self._server: SetupServer | None = None
        self.findings: list[Finding] = []
        self.changed: list[str] = []

    def run(self) -> None:
        if not is_public_name(self._options.host):
            raise SetupFailed(f"'{self._options.host}' is no public name. Use one like mail.example.com.")
        there = {} if self._service.settings is None else settings_file.read(self._service.settings)
        host = questions.ask_all(
            self._options, {**there, **os.environ}, self._ask, str(self._service.data_dir)
        )
        self._addresses = reachability.to_addresses(self._given)
        host = replace(host, has_ipv6=bool(self._addresses.ipv6 or reachability.own_public_ipv6()))
        host, may_send = self._find_way_out(host)
        config = self._write_settings(host, there)
        self._server = SetupServer(self._service, config)
        is_running = self._require_ports(config)
        self._prepare_service(is_running)
        self._look_up_addresses(config)
        if not self._set_records(config):
            return
        self._start()
        self._check_reachability(config)
        if self._has_certificate(config):
            self._open_mail(config, host, may_send)

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()

    def report(self, name: str, verdict: Any, detail: str, next_step: str = "") -> None:
        self.findings.append(Finding(name, verdict, detail, next_step))

    def fail(self, name: str, detail: str, next_step: str = "") -> None:
        self.report(name, "fail", detail, next_step)

    def _ask(self, question: str, default: str, is_secret: bool) -> str:
        if not self._options.asks:
            return default
        shown = bool(default)
        answer = typer.prompt(question, default=default, show_default=shown, hide_input=is_secret, err=True)
        return str(answer).strip()

    def _find_way_out(self, host: Host) -> tuple[Host, bool]:
        """Try port 25 of the owner's mail server, and ask for a relay if it is closed."""
        if host.relay not in ("", "mx"):
            self.report("port 25 out", "pass", "not needed: email leaves through a relay")
            return host, True
        found = run(with_resolver(lambda each: reachability.try_way_out(each, host.name, host.owner)))
        if found.is_open:
            self.report("port 25 out", "pass", f"{found.server} answers: {found.reason}")
            return host, True
        if not found.server:
            step = "Check the name servers of this machine, and the owner's address."
            self.fail("port 25 out", f"not tried: {found.reason}", step)
            return host, False
        reason = f"{found.server}: {found.reason}"
        relay = questions.ask_relay(self._ask) if self._options.asks else ""
        if relay:
            self.report("port 25 out", "pass", f"closed ({reason}); email leaves through a relay")
            return replace(host, relay=relay), True
        self.fail("port 25 out", f"closed: {reason}", f"{questions.RELAYS} Then: --relay URL.")
        return host, False

    def _write_settings(self, host: Host, there: Mapping[str, str]) -> Config:
        path = self._service.settings
        if path is None:
            config = load({**os.environ, **self._options.explicit()})
            if config.domain != host.name:
                raise SetupFailed(NO_SETTINGS.format(config.domain, host.name))
            return config
        options = {**self._options.explicit(), **({"POSTROOM_OUTBOUND": host.relay} if host.relay else {})}
        if there.get("POSTROOM_DOMAIN", host.name) != host.name:
            raise SetupFailed(f"{path} is for {there['POSTROOM_DOMAIN']}. One machine is one mail host.")
        wanted = settings_file.settings_of(host)
        merged = settings_file.merge(wanted, there, options, os.environ)
        config = load({**merged, **os.environ, SETTINGS_FILE: ""})
        try:
            parse_ways(config.outbound)
        except ValueError as error:
            raise ConfigError("POSTROOM_OUTBOUND", str(error)) from None
        if self._service.user and self._service.make_user():
            self.changed.append(f"user {self._service.user}")
        if settings_file.write(path, merged, self._service.group()):
            self.changed.append(str(path))
        return config

    def _require_ports(self, config: Config) -> bool:
        """Return True if the server runs already, and has its ports."""
        assert self._server is not None
        wanted = reachability.endpoints(config)
        numbers = ", ".join(str(each.port) for each in wanted)
        if self._server.answers():
            self.report("ports", "pass", f"{numbers}: this server has them")
            return True
        if busy := reachability.busy_ports(wanted):
            named = ", ".join(f"{port} ({reason})" for port, reason in busy.items())
            step = "`ss -ltnp` shows which program has a port: stop it and disable its service."
            raise SetupFailed(f"These ports cannot be used: {named}. {step}")
        self.report("ports", "pass", f"{numbers} are free")
        return False

    def _prepare_service(self, is_running: bool) -> None:
        service = self._service
        if service.settings is None:
            return
        service.make_data_folder()
        if service.write_unit():
            self.changed.append(str(service.unit))
        if service.is_by_systemd and is_hidden(service.program):
            raise SetupFailed(f"{service.program} is in a home folder, which services cannot see. Use /opt.")
        if not is_running:
            service.run("migrate", "--create")

    def _look_up_addresses(self, config: Config) -> None:
        found = run(with_resolver(lambda each: reachability.find_addresses(each, config.domain)))
        ipv4, ipv6 = self._addresses.ipv4 or found.ipv4, self._addresses.ipv6 or found.ipv6
        if ipv6 and not reachability.takes_ipv6(config):
            step = f"Set POSTROOM_SMTP=[::]:{config.smtp.port}, the other addresses too, and run this again."
            self.report("IPv6", "warn", f"{ipv6} is not used: the server listens on IPv4 alone", step)
            ipv6 = ""
        self._addresses = HostAddresses(ipv4, ipv6)
        if ipv4:
            self.report("address", "pass", ", ".join(self._addresses.all))
        else:
            self.fail("address", "This machine has no public IPv4 address.", "Give it with --address.")

    def _set_records(self, config: Config) -> bool:
        """Return False if the host has no address yet: an order of a certificate would only fail."""
        shown = json.loads(self._service.run("domains", "get", "--json"))["data"]
        own = next(each for each in shown if each["domain"] == config.domain)
        wanted = records.wanted_records(config, self._addresses, own["records"])
        outcomes = run(set_at_provider(config, wanted, self._replaces)) if config.dns_provider else []
        self.changed += [
            f"DNS {each.record.type} {each.record.name}" for each in outcomes if each.state == "set"
        ]
        refused = [each for each in outcomes if each.state in ("kept", "failed")]
        left = {each.record for each in refused}
        looked_for = [each for each in wanted if each not in left]
        missing = run(find_missing(looked_for, is_waited_for=bool(outcomes)))
        self._report_records(len(wanted), refused, missing)
        self._report_stray_addresses(config)
        if self._addresses.ipv4 and not any(each.type == "A" for each in (*left, *missing)):
            return True
        step = "Set the records and run the same command again."
        self.fail("server", f"not started: {config.domain} does not lead to this machine yet", step)
        return False

    def _report_stray_addresses(self, config: Config) -> None:
        """Report AAAA records of another machine.

        Clients try it first, and get no certificate or no answer.
        """
        shown = run(with_resolver(lambda each: reachability.find_ipv6(each, config.domain)))
        if stray := [each for each in shown if each != self._addresses.ipv6]:
            step = f"Remove the AAAA record of {config.domain}, or give the address with --address."
            self.report("IPv6 in the DNS", "warn", f"{', '.join(stray)} is not this machine", step)

    def _report_records(
        self, wanted: int, refused: list[SetRecordOutcome], missing: list[WantedRecord]
    ) -> None:
        self._report_failures([each.detail for each in refused if each.state == "failed"])
        for each in refused:
            self._report_record(each.record, "not set" if each.state == "failed" else each.detail)
        for record in missing:
            self._report_record(record, "missing")
        wrong = len(refused) + len(missing)
        self.report("DNS records", "warn" if wrong else "pass", f"{wanted - wrong} of {wanted} are right")

    def _report_failures(self, reasons: list[str]) -> None:
        """Report each reason once, however many records it concerns."""
        if reasons:
            self.fail("DNS provider", " ".join(dict.fromkeys(reasons)), PROVIDER_FAILED)

    def _report_record(self, record: WantedRecord, detail: str) -> None:
        is_needed = record.type in NEEDED or "v=DKIM1" in record.value
        verdict = "fail" if is_needed else "warn"
        self.report(f"DNS {record.type} {record.name}", verdict, detail, f"{SET_THIS}{record.line()}")

    def _start(self) -> None:
        assert self._server is not None
        is_started = self._server.start(has_changed=bool(self.changed))
        if is_started and self._service.is_by_systemd:
            self.changed.append("server started")
        elif is_started:
            line = self._service.command_line("serve")
            self.report(
                "service", "pass", "no systemd here: started for this setup alone", f"Start it: {line}"
            )

    def _check_reachability(self, config: Config) -> None:
        addresses = self._addresses.all
        reverse = run(with_resolver(lambda r: server_checks.check_reverse_names(r, config.domain, addresses)))
        incoming = run(server_checks.check_port_in(config.domain, addresses))
        for each in (reverse, incoming):
            self.findings.append(to_finding(each))

    def _has_certificate(self, config: Config) -> bool:
        assert self._server is not None
        if not config.acme:
            self.report("certificate", "pass", "not ours: POSTROOM_ACME is off")
            return True
        fault = self._server.wait_for_certificate()
        if not fault:
            self.report("certificate", "pass", f"clients trust {config.domain}")
            return True
        step = "Mend this and run the same command again: owner, inbox and test email follow then."
        self.fail("certificate", fault, step)
        return False

    def _open_mail(self, config: Config, host: Host, may_send: bool) -> None:
        first = FirstMail(self._service, config.base_url, self.changed)
        try:
            for each in first.open(config.domain, host.owner, self._inbox, may_send):
                self.findings.append(each)
        except PostroomError as error:
            self.fail("first inbox", error.message, f"Is {config.base_url} reached from this machine?")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def with_resolver(work: Any) -> Any:
    resolver = Resolver()
    try:
        return await work(resolver)
    finally:
        await resolver.close()


async def find_missing(wanted: list[WantedRecord], is_waited_for: bool) -> list[WantedRecord]:
    if is_waited_for:
        return await records.wait_until_visible(wanted)
    found: list[WantedRecord] = await with_resolver(lambda each: records.find_missing(wanted, each))
    return found


async def set_at_provider(
    config: Config, wanted: list[WantedRecord], replaces: bool
) -> list[SetRecordOutcome]:
    """Set the records at the provider, which may be in the operator's own network."""
    resolver = Resolver()
    limits = WebhookLimits(deadline_seconds=PROVIDER_SECONDS)
    fetcher = HttpCourier(resolver, allow_private=True, limits=limits)
    try:
        provider = open_provider(config.dns_provider, config.dns_token, fetcher, resolver)
        return await records.set_records(provider, wanted, replaces)
    except DnsProviderError as error:
        raise SetupFailed(error.reason) from error
    finally:
        await fetcher.close()
        await resolver.close()


def to_finding(check: HealthCheck) -> Finding:
    verdict: Any = VERDICTS[check.state]
    found = check.found.replace("\n", ", ") or check.state
    return Finding(check.name, verdict, found, "" if verdict == "pass" else check.why)

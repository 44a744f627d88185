"""Check what the doctor looks at: each check returns pass, warn or fail, with the next step."""

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from postroom_client import profiles
from postroom_client.client import Client
from postroom_client.errors import PostroomError
from postroom_client.limits import LONGEST_PAGE
from postroom_client.results import Connection, Domain, User
from postroom_client.settings import Settings
from postroom_client.transport.exchange import Call, Patience, Reply, content

SKEW_WARN_SECONDS, SKEW_FAIL_SECONDS = 5, 300  # signatures are refused beyond 300
DISK_WARN_BYTES, DISK_FAIL_BYTES = 2 * 1024**3, 200 * 1024**2
QUEUE_WARN_SECONDS, QUEUE_FAIL_SECONDS = 3600, 24 * 3600
SEARCH_WARN_MESSAGES = 1_000
SMTP_TIMEOUT_SECONDS = 5.0
LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}
LOCAL_SMTP_PORT, PUBLIC_SMTP_PORT, IMAPS_PORT, SUBMISSIONS_PORT = 2525, 25, 993, 465
GIGABYTE = 1024**3
DNS = "DNS records"
NEEDED = ("MX", "DKIM")  # without these a domain neither receives nor proves what it sends
WAYS = "inbound"
PEOPLE = "people"
NAMED = 5  # of many connections with the same fault

ANALYSIS_FAILURES = re.compile(r"^postroom_analysis_failures_total\{[^}]*\} ([0-9.]+)$", re.MULTILINE)

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    verdict: Verdict
    detail: str
    next_step: str = ""

    def to_json(self) -> dict[str, str]:
        named = {"name": self.name, "verdict": self.verdict, "detail": self.detail}
        return {**named, "nextStep": self.next_step} if self.next_step else named


Check = Callable[[Client, Settings], Finding]


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield each finding. Leave out checks that need the server or a valid key if that is missing."""
    yield check_profile_file()
    patience = Patience(attempts=2, longest_wait_seconds=2)
    with Client(settings.api_key or "missing", settings.base_url, patience=patience) as client:
        connection = check_connection(client, settings)
        yield connection
        if connection.verdict == "pass":
            yield from _examine_server(client, settings)
    host = urlsplit(settings.base_url).hostname or "localhost"
    yield check_port(SMTP, host, smtp_port(host))
    for door in (IMAP, SUBMISSION):
        if (port := set_port(door)) is not None:
            yield check_port(door, host, port)


def _examine_server(client: Client, settings: Settings) -> Iterator[Finding]:
    key = check_key(client, settings)
    yield key
    for name, check in CHECKS:
        if name not in (DNS, WAYS, PEOPLE) or key.verdict == "pass":
            yield _guarded(name, check, client, settings)


def _guarded(name: str, check: Check, client: Client, settings: Settings) -> Finding:
    try:
        return check(client, settings)
    except PostroomError as error:
        return Finding(name, "fail", error.message, "Check the server's log.")


def check_profile_file() -> Finding:
    place = profiles.file_path()
    if not place.exists():
        return Finding("profile", "warn", f"There is none at {place}", "Create one: postroom login")
    if place.stat().st_mode & 0o077:
        return Finding("profile", "warn", f"Other users can read {place}", f"Protect it: chmod 600 {place}")
    return Finding("profile", "pass", str(place))


def check_connection(client: Client, settings: Settings) -> Finding:
    try:
        _get(client, "/health")
    except PostroomError as error:
        return Finding(
            "connection", "fail", error.message, "Start the server (postroom serve), or pass --base-url."
        )
    return Finding("connection", "pass", settings.base_url)


def check_key(client: Client, settings: Settings) -> Finding:
    if not settings.api_key:
        return Finding("key", "fail", "There is none.", "Set one: postroom login, or POSTROOM_API_KEY")
    try:
        me = client.me()
    except PostroomError as error:
        return Finding("key", "fail", error.message, "Set another: postroom login")
    return Finding("key", "pass", f"{me.account_name} ({me.plan}), scope {me.scope}")


def check_clock(client: Client, settings: Settings) -> Finding:
    date = _get(client, "/health").date
    if date is None:
        return Finding("clock", "warn", "The server does not report its time.")
    try:
        skew = abs(time.time() - parsedate_to_datetime(date).timestamp())
    except ValueError:
        return Finding("clock", "warn", "The server's time cannot be read.")
    verdict = grade(skew, SKEW_WARN_SECONDS, SKEW_FAIL_SECONDS)
    step = "" if verdict == "pass" else "Set both clocks by NTP: webhook signatures depend on it."
    return Finding("clock", verdict, f"{skew:.0f} s apart", step)


def check_storage(client: Client, settings: Settings) -> Finding:
    try:
        _get(client, "/ready")
    except PostroomError as error:
        return Finding("storage", "fail", error.message, "Check the database and the blob store.")
    return Finding("storage", "pass", "Database and blobs answer.")


def check_certificates(client: Client, settings: Settings) -> Finding:
    """Check that the server gets the certificates that it orders. A page for operators shows the reasons."""
    return _check_warnings(client, "certificates", True, "All certificate orders work.")


def check_services(client: Client, settings: Settings) -> Finding:
    """Check that the services answer that grade email: clamd, rspamd, spamd, DNS lists."""
    return _check_warnings(client, "services", False, "All services that check email answer.")


def _check_warnings(client: Client, name: str, is_of_certificates: bool, fine: str) -> Finding:
    try:
        warnings = msgspec.json.decode(_get(client, "/ready").content, type=Ready).warnings
    except (PostroomError, msgspec.DecodeError, UnicodeDecodeError):
        return Finding(name, "warn", f"The server does not report its {name}.")
    found = [each.partition(" Run ")[0] for each in warnings if ("certificate" in each) is is_of_certificates]
    if not found:
        return Finding(name, "pass", fine)
    return Finding(name, "warn", " ".join(found[:NAMED]), "Read the reason on the page Operator, Health.")


class SearchProgress(msgspec.Struct, rename="camel", frozen=True):
    earlier_percent: float = 100
    waiting: int = 0


class Ready(msgspec.Struct, frozen=True):
    search: SearchProgress = SearchProgress()
    warnings: tuple[str, ...] = ()


def check_search(client: Client, settings: Settings) -> Finding:
    """Check that all email is indexed. Searches do not find the rest; everything else works meanwhile."""
    try:
        progress = msgspec.json.decode(_get(client, "/ready").content, type=Ready).search
    except (PostroomError, msgspec.DecodeError, UnicodeDecodeError):
        return Finding("search", "warn", "The server does not report the state of its index.")
    percent, waiting = progress.earlier_percent, progress.waiting
    if percent < 100:
        detail = f"Earlier email is being indexed: {percent:g} %"
        return Finding("search", "warn", detail, "It continues on its own.")
    verdict = grade(waiting, SEARCH_WARN_MESSAGES, float("inf"))
    return Finding("search", verdict, f"{waiting} messages are not indexed yet")


def check_dns(client: Client, settings: Settings) -> Finding:
    """Check the records of every domain, except one that only works on a single machine."""
    if client.me().scope != "account":
        return Finding(DNS, "pass", "Not visible to this key.")
    domains = [each for each in client.list_domains(limit=100).data if not is_at_home(each)]
    faults = [
        (domain, check)
        for domain in domains
        for check in client.get_domain_health(domain.id).data
        if check.state in ("missing", "wrong")
    ]
    if not faults:
        names = ", ".join(domain.domain for domain in domains)
        return Finding(DNS, "pass", names or "No domain added, so no records are needed.")
    return Finding(
        DNS,
        "fail" if any(check.name in NEEDED for _, check in faults) else "warn",
        ", ".join(f"{domain.domain}: {check.name} {check.state}" for domain, check in faults),
        f"See what to set: postroom domains health {faults[0][0].id}",
    )


def is_at_home(domain: Domain) -> bool:
    return domain.system and domain.domain.endswith(".localhost")


def check_ways(client: Client, settings: Settings) -> Finding:
    """Check external mailboxes and mail services, as created by `postroom connect`."""
    if client.me().scope == "inbox":
        return Finding(WAYS, "pass", "Not visible to this key.")
    found = list_ways(client)
    if broken := [each for each in found if each.state == "failing"]:
        detail = in_short([f"{each.address or each.provider}: {each.last_error}" for each in broken], "; ")
        return Finding(WAYS, "fail", detail, f"Try it: postroom connections test {broken[0].id}")
    if waiting := [each for each in found if each.last_mail_at is None]:
        names = in_short([each.address or each.provider or each.id for each in waiting], ", ")
        return Finding(WAYS, "warn", f"No email yet from {names}", "Send one from outside.")
    if found:
        return Finding(WAYS, "pass", f"{len(found)} connections bring email in.")
    if urlsplit(settings.base_url).hostname in LOCAL_HOSTS:
        step = "Connect a mailbox or a mail service: postroom connect --help"
        return Finding(WAYS, "warn", "No email from outside reaches this machine.", step)
    return Finding(WAYS, "pass", "Email comes in on port 25.")


def check_people(client: Client, settings: Settings) -> Finding:
    """Check that no user has the address of an inbox, where agents read: earlier versions allowed it."""
    me = client.me()
    if me.scope != "account" or "manage" not in me.permissions:
        return Finding(PEOPLE, "pass", "Not visible to this key.")
    found: list[User] = []
    while True:
        page = client.list_users(limit=LONGEST_PAGE, offset=len(found))
        found += page.data
        if len(page.data) < LONGEST_PAGE:
            break
    if shared := [each.email for each in found if each.address_is_an_inbox]:
        step = "Invite them with another address: postroom users create"
        return Finding(PEOPLE, "fail", f"Inboxes of this server receive: {in_short(shared, ', ')}", step)
    return Finding(PEOPLE, "pass", f"{len(found)} users, and none has the address of an inbox.")


def list_ways(client: Client) -> list[Connection]:
    """Return all connections, page by page."""
    found: list[Connection] = []
    while True:
        page = client.list_connections(limit=LONGEST_PAGE, offset=len(found))
        found += page.data
        if len(page.data) < LONGEST_PAGE:
            return found


def in_short(names: list[str], between: str) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - NAMED
    return between.join(names[:NAMED]) + (f"{between}and {more} more" if more > 0 else "")


def check_disk(client: Client, settings: Settings) -> Finding:
    free = _gauge(client, "postroom_disk_free_bytes")
    if free is None:
        return Finding("disk", "warn", "The server does not report it.", "Check with df on its machine.")
    verdict = grade(-free, -DISK_WARN_BYTES, -DISK_FAIL_BYTES)
    step = "" if verdict == "pass" else "Free space on the server's disk: when it is full, email is deferred."
    return Finding("disk", verdict, f"{free / GIGABYTE:.1f} GB free", step)


def check_queue(client: Client, settings: Settings) -> Finding:
    age = _gauge(client, "postroom_queue_oldest_seconds")
    if age is None:
        return Finding("queue", "warn", "The server does not report the age of its queue.")
    verdict = grade(age, QUEUE_WARN_SECONDS, QUEUE_FAIL_SECONDS)
    step = "" if verdict == "pass" else "See why: postroom messages list --direction outbound"
    return Finding("queue", verdict, f"The oldest delivery has waited {age:.0f} s", step)


def check_incoming(client: Client, settings: Settings) -> Finding:
    """Check that all accepted email is in its inboxes, and that no reader failed."""
    text = _get(client, "/metrics").content.decode(errors="replace")
    aside = _gauge(client, "postroom_journal_set_aside")
    damaged = _gauge(client, "postroom_journal_damaged")
    if damaged:
        step = "See which, on the server's machine: postroom verify"
        return Finding("incoming", "fail", f"{damaged:.0f} pieces of journals are damaged", step)
    if aside:
        step = "Upgrade and restart the server, which tries them again. The log says why they failed."
        return Finding("incoming", "fail", f"{aside:.0f} accepted emails could not be stored", step)
    failed = sum(float(found[1]) for found in ANALYSIS_FAILURES.finditer(text))
    if failed:
        step = "Report the traceback in the server's log. These messages have analysis: failed."
        return Finding("incoming", "warn", f"{failed:.0f} times a reader of email failed", step)
    return Finding("incoming", "pass", "All accepted email is in its inboxes.")


def check_python(client: Client, settings: Settings) -> Finding:
    text = _get(client, "/metrics").content.decode(errors="replace")
    if 'postroom_python{build="plain"} 1' not in text:
        return Finding("python", "pass", "Python is optimized.")
    step = "Install the Python of your system or of python.org, and set up again: make clean setup"
    return Finding("python", "warn", "Python was built without optimization: 15 to 50 % slower", step)


@dataclass(frozen=True, slots=True)
class App:
    """A port where a server greets (RFC 5321, section 3.1), or begins with TLS (RFC 8314)."""

    name: str
    setting: str
    greeting: bytes
    missing: str  # what it is not, if it greets otherwise
    does: str
    step: str
    tls_port: int | None = None


PROGRAMS = "Let mail clients connect to port {port} of {host}"
SMTP = App(
    "SMTP port",
    "POSTROOM_SMTP",
    b"220",
    "a mail server",
    "takes email",
    "Let {host} take email on port {port}",
)
IMAP = App(
    "IMAP port", "POSTROOM_IMAP", b"* OK", "an IMAP server", "serves mail clients", PROGRAMS, IMAPS_PORT
)
SUBMISSION = App(
    "submission port",
    "POSTROOM_SUBMISSION",
    b"220",
    "a mail server",
    "takes email of mail clients",
    PROGRAMS,
    SUBMISSIONS_PORT,
)


def check_port(door: App, host: str, port: int) -> Finding:
    step = f"{door.step.format(host=host, port=port)}: check {door.setting}, here too, and the firewall."
    try:
        with socket.create_connection((host, port), timeout=SMTP_TIMEOUT_SECONDS) as connection:
            greeting = door.greeting if port == door.tls_port else connection.recv(512)
    except OSError as error:
        return Finding(door.name, "fail", f"{host}:{port} does not answer: {error.strerror or error}", step)
    if not greeting.startswith(door.greeting):
        return Finding(door.name, "fail", f"{host}:{port} does not answer like {door.missing}.", step)
    return Finding(door.name, "pass", f"{host}:{port} {door.does}.")


def set_port(door: App) -> int | None:
    """Return the first port of the setting, or None if this machine's environment has none."""
    setting = os.environ.get(door.setting, "").partition(",")[0].strip().rpartition(":")[2]
    return int(setting) if setting.isascii() and setting.isdigit() else None


def smtp_port(host: str) -> int:
    """Return the SMTP port: on this machine that of the server's setting, elsewhere the public one."""
    if host not in LOCAL_HOSTS:
        return PUBLIC_SMTP_PORT
    port = set_port(SMTP)
    return LOCAL_SMTP_PORT if port is None else port


def grade(value: float, warn_from: float, fail_from: float) -> Verdict:
    if value >= fail_from:
        return "fail"
    return "warn" if value >= warn_from else "pass"


def _get(client: Client, target: str) -> Reply:
    return client.exchange(Call("GET", target, content, timeout_seconds=10))


def _gauge(client: Client, name: str) -> float | None:
    """Return a number of the server's metrics (Prometheus text format), or None."""
    text = _get(client, "/metrics").content.decode(errors="replace")
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    try:
        return None if found is None else float(found[1])
    except ValueError:
        return None


CHECKS: tuple[tuple[str, Check], ...] = (
    ("clock", check_clock),
    ("storage", check_storage),
    ("certificates", check_certificates),
    ("services", check_services),
    (DNS, check_dns),
    (WAYS, check_ways),
    (PEOPLE, check_people),
    ("disk", check_disk),
    ("queue", check_queue),
    ("incoming", check_incoming),
    ("search", check_search),
    ("python", check_python),
)

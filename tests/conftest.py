"""Engines and servers for the tests: every `db` and `server` comes once on SQLite and once on PostgreSQL."""

import asyncio
import contextlib
import functools
import gc
import os
import signal
import smtplib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import hypothesis
import pytest
import uvloop
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from postroom import config as configuration
from postroom.assembly import serving
from postroom.config import Config
from postroom.events import event_log
from postroom.inward import examine, sender_checks
from postroom.inward.journal import mail_journal
from postroom.net.dns import Resolver
from postroom.processes import loading
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.database import Database
from postroom.storage.engines import postgres, postgres_connections
from postroom.storage.engines.postgres import PostgresDatabase
from postroom.storage.engines.sqlite import SqliteDatabase
from postroom.storage.opening import open_database
from postroom.upkeep import integrity
from postroom.web.api import messages, search
from tests import kept_connections, late_imports, memory_folder, programs, shares, warm_reader, warm_start
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer
from tests.mail.keys import give_every_domain_this_key
from tests.mail.keys import signing_key as signing_key
from tests.migrated import migrated_sqlite, put_migrated_sqlite
from tests.own_home import Homes, UserFiles
from tests.plain_transport import http_client
from tests.postgres_databases import Databases, make_migrated_database, new_database
from tests.postgres_engine import OF_TESTS, running_postgres
from tests.shared_certificate import share_certificates
from tests.side_by_side import is_side_by_side
from tests.side_by_side import pytest_addoption as pytest_addoption
from tests.side_by_side import pytest_runtestloop as pytest_runtestloop
from tests.unhurried_postgres import lengthen_limits
from tests.waiting import until

POSTGRES_URL = "POSTROOM_TEST_POSTGRES_URL"
ENGINES = ("sqlite", "postgres")
MANY_TESTS = 500  # a run of fewer may need none of what comes late
LONGEST = (
    "tests/end_to_end/",
    "tests/browser/",
    "tests/imap/test_kills",
    "tests/mixed_kills/",
    "tests/nodes/",
    "tests/outward/test_outcomes_are_kept",
    "tests/workers/",
    "tests/test_docs",
    "tests/test_generated",
    "tests/test_bench",
    "tests/test_own_home",
    "tests/frameworks/",
    "tests/simulation/",
)  # first: none is left alone at the end
OF_LIBRARY = ("tests/mail", "tests/extraction")  # run alone, they need no PostgreSQL
SHORTEST = ("tests/mail/", "tests/net/")  # last: no core waits for another one at the end

# Neither a case nor the making of one is judged by the clock of a busy machine. A run invents the same cases
# as the one before, and others where somebody says how many.
CASES = os.environ.get("POSTROOM_TEST_CASES")
hypothesis.settings.register_profile(
    "patient",
    hypothesis.settings(),
    max_examples=int(CASES or "40"),  # invented for each property
    derandomize=CASES is None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("patient")
# Else it parses all our modules for their constants, and holds thousands of them against each alphabet.
providers._get_local_constants = functools.cache(Constants)

give_every_domain_this_key()
share_certificates()
postgres.READERS = 2  # each is a process of PostgreSQL; servers that are processes have them all
postgres_connections.connect = kept_connections.connect
lengthen_limits()
search.SECONDS = 60.0  # a page of results is not cut short by what else the machine does
mail_journal.PRESENT_SECONDS = 60.0  # with the 250 a mail is in its inbox
examine.DEADLINE_SECONDS = sender_checks.JUDGE_SECONDS = messages.PREVIEW_SECONDS = (
    60.0  # files are read, if late
)
# What a server in the test process does now and then by itself, it does when a test says so, and not after
# five seconds, as servers that are processes do.
leader_leases.FIRST_SECONDS = integrity.FIRST_SECONDS = 3600.0

gc.disable()  # until all tests are collected: nothing of that goes again
_engine = contextlib.ExitStack()
_databases = Databases()
_homes = Homes(memory_folder.choose())
USER_FILES = pytest.StashKey[UserFiles]()
LEFT_OUT = pytest.StashKey[Counter[str]]()
FOR_OTHERS = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """The first process starts PostgreSQL; parallel workers and runs inside a test inherit its address."""
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a shell does this to what it runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process that a test starts compiles everything
    sys.dont_write_bytecode = False
    os.environ["UV_USE_IO_URING"] = "0"  # else a thread of the kernel turns in vain for 10 ms a new loop
    if folder := memory_folder.choose():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)  # where pytest makes every `tmp_path`
    config.stash[USER_FILES] = UserFiles(os.environ, _homes.folder)
    config.stash[USER_FILES].watch_this_process()
    _homes.move_into_a_new_one(os.environ)
    if POSTGRES_URL not in os.environ and not is_of_library_alone(config):
        shared = running_postgres(folder, settings=OF_TESTS, source="wheel")
        os.environ[POSTGRES_URL] = _engine.enter_context(shared)
        make_migrated_database(os.environ[POSTGRES_URL])


def is_of_library_alone(config: pytest.Config) -> bool:
    """Whether every path that the run was given is one of the tests of the library."""
    folders = [config.rootpath / folder for folder in OF_LIBRARY]
    paths = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return all(any(path.resolve().is_relative_to(folder) for folder in folders) for path in paths)


def pytest_unconfigure(config: pytest.Config) -> None:
    _databases.close()
    _engine.close()
    _homes.remove()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _homes.move_into_a_new_one(os.environ)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[LEFT_OUT] = programs.leave_out(config, items)
    if len(items) > MANY_TESTS:
        config.stash[FOR_OTHERS] = shares.leave_for_others(config, items)
    items.sort(key=lambda item: (item.nodeid.startswith(SHORTEST), not item.nodeid.startswith(LONGEST)))


def pytest_collection_finish(session: pytest.Session) -> None:
    if is_side_by_side(session.config) and len(session.items) > MANY_TESTS:
        late_imports.load()
        migrated_sqlite()
    gc.freeze()
    gc.set_threshold(loading.OBJECTS_BETWEEN_COLLECTIONS)  # as in a server
    gc.enable()


def pytest_collection(session: pytest.Session) -> None:
    """What every process of the run needs is made before they are copied from this one."""
    if is_side_by_side(session.config):
        signing_key()
        warm_start.share_fork_server()  # it loads while tests are collected
        warm_reader.take_from_fork_server()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = programs.summary(config.stash.get(LEFT_OUT, Counter()))
    for line in (*left_out, *shares.summary(config.stash.get(FOR_OTHERS, 0))):
        terminalreporter.write_line(line)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Whatever else they did: tests that wrote into the user's own folders have failed."""
    user_files = session.config.stash.get(USER_FILES, None)
    for path in user_files.written() if user_files else []:
        print(f"\nwrote into a folder of the user: {path}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}  # the loop that the server runs on


@contextlib.contextmanager
def new_postgres_database(template: str) -> Iterator[str]:
    with new_database(os.environ[POSTGRES_URL], template) as url:
        yield url


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty database with this version's schema."""
    with _databases.borrow(os.environ[POSTGRES_URL]) as url:
        yield url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Once on each engine; what has no SQL of its own under test is marked, and runs on SQLite alone.

    Where a module is marked, its tests that run statements which no other test runs are marked for both.
    """
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "database_url" in metafunc.fixturenames and "database_url" not in chosen:
        marks = (mark.name for mark in metafunc.definition.iter_markers())
        nearest = next((name for name in marks if name in ("sqlite_alone", "both_databases")), "")
        engines = ENGINES[:1] if nearest == "sqlite_alone" else ENGINES
        metafunc.parametrize("database_url", engines, indirect=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ""
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What stays in a circle of references stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def settings(folder: Path, **values: str) -> Config:
    """A configuration on free ports, in its own folder, which gets a database with this version's schema."""
    defaults = {
        "DATA_DIR": str(folder),
        "HTTP": "127.0.0.1:0",
        "SMTP": "127.0.0.1:0",
        "WORKERS": "0",  # where a test does not say otherwise, it sees everything in one process
        "OUTBOUND": "smtp://127.0.0.1:9",  # nobody listens: mail to elsewhere waits in the queue
        "REQUESTS_PER_MINUTE": "1000000",  # who waits asks often, and a clock that stands ends no minute
    }
    if not values.get("DATABASE_URL") and folder.is_dir() and not (folder / DATABASE_NAME).exists():
        put_migrated_sqlite(folder)
    return configuration.load({f"POSTROOM_{name}": value for name, value in {**defaults, **values}.items()})


@pytest.fixture
async def db(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Database]:
    opened = await open_database(settings(tmp_path, DATABASE_URL=database_url), clock.now())
    yield opened
    await opened.close()


def api_client(base_url: str, token: str) -> httpx2.AsyncClient:
    return http_client(base_url, {"Authorization": f"Bearer {token}"})


@dataclass
class Server:
    """A running server and a client that holds the first account's key."""

    resources: Resources
    api: httpx2.AsyncClient
    token: str
    clock: FakeClock
    smtp_port: int
    imap_port: int | None = None
    submission_port: int | None = None

    async def new_inbox(self, name: str) -> str:
        answer = await self.api.post("/v1/inboxes", json={"mailboxName": name})
        inbox_id: str = answer.json()["id"]
        return inbox_id

    async def deliver(self, raw: bytes, *recipients: str, sender: str = "alice@example.com") -> None:
        """Hands a mail over by SMTP, as another mail server would."""

        def hand_over() -> None:
            with smtplib.SMTP("127.0.0.1", self.smtp_port) as smtp:
                smtp.sendmail(sender, [f"{name}@postroom.localhost" for name in recipients], raw)

        await asyncio.to_thread(hand_over)

    async def deliver_to(self, raw: bytes, address: str, sender: str = "alice@example.com") -> None:
        """To any address."""

        def hand_over() -> None:
            with smtplib.SMTP("127.0.0.1", self.smtp_port) as smtp:
                smtp.sendmail(sender, [address], raw)

        await asyncio.to_thread(hand_over)

    async def next_event(self, after: str | None = None) -> dict[str, Any]:
        """Waits for the event behind `after`."""
        query = {"wait": "60", "limit": "1"} | ({} if after is None else {"after": after})
        page = (await self.api.get("/v1/events", params=query, timeout=120)).json()
        assert page["data"], "no event came"
        event: dict[str, Any] = page["data"][0]
        return event

    @property
    def base_url(self) -> str:
        return self.resources.config.base_url

    def client(self, token: str) -> httpx2.AsyncClient:
        return api_client(self.base_url, token)


async def until_somebody_listens(server: Server) -> None:
    """Until a request waits for the next event of the first account."""
    bell = event_log.bell((await server.api.get("/v1/me")).json()["accountId"])
    db = server.resources.db
    assert isinstance(db, SqliteDatabase | PostgresDatabase)
    await until(lambda: db._bells._subscriptions.get(bell))


@contextlib.asynccontextmanager
async def running_server(
    config: Config, clock: FakeClock, resolver: Resolver | None = None
) -> AsyncIterator[Server]:
    """Names are asked of `resolver`, else of a server on this machine that knows none."""
    async with (
        DnsServer() as names,
        serving(config, clock, resolver or Resolver([names.address]), signing_key) as postroom,
    ):
        assert postroom.first_token is not None
        async with api_client(postroom.resources.config.base_url, postroom.first_token) as api:
            yield Server(
                postroom.resources,
                api,
                postroom.first_token,
                clock,
                postroom.smtp_port,
                postroom.programs.imap,
                postroom.programs.submission,
            )


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, DATABASE_URL=database_url), clock) as running:
        yield running

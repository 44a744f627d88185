"""The operator's commands, beside a server that runs as a process of its own."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx2
import psycopg
import pytest

from postroom.__main__ import main
from postroom.commands.transfer import with_resources
from postroom.mailbox import inboxes
from postroom.resources import Resources
from postroom_client import profiles
from postroom_client.profiles import Profile
from tests import warm_start
from tests.conftest import new_postgres_database
from tests.migrated import put_migrated_sqlite
from tests.plain_transport import trusting


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Operator:
    """Someone at a shell, whose data folder is `folder`."""

    folder: Path
    set_environment: Callable[[str, str], None]
    read_output: Callable[[], tuple[str, str]]

    def make_database(self) -> None:
        """As a first start does."""
        self.folder.mkdir()
        put_migrated_sqlite(self.folder)

    def run(self, *arguments: str, **settings: str) -> Done:
        """In this process, since starting one takes longer than most commands do."""
        for name, value in settings.items():
            self.set_environment(f"POSTROOM_{name}", value)
        with pytest.raises(SystemExit) as end:
            main([*arguments])
        stdout, stderr = self.read_output()
        if isinstance(end.value.code, str):  # Python prints it and ends with 1
            return Done(1, stdout, f"{stderr}{end.value.code}\n")
        return Done(end.value.code or 0, stdout, stderr)

    def read(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def serving(self, *, makes_database: bool = False, **settings: str) -> Iterator["Running"]:
        for name, value in settings.items():
            self.set_environment(f"POSTROOM_{name}", value)
        with os.fdopen(os.dup(2), "w") as log:
            process = warm_start.start(os.environ, log, makes_database=makes_database)
        assert process.stdout is not None
        with process.stdout:
            try:
                yield Running(process, read_welcome(process.stdout))
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()


@dataclass(frozen=True)
class Running:
    process: warm_start.Process
    welcome: str

    @property
    def base_url(self) -> str:
        found = re.search(r"API +(http://\S+)", self.welcome)
        assert found is not None
        return found[1]

    def status(self, token: str, path: str = "/v1/me") -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.get(f"{self.base_url}{path}", headers=headers, verify=False, timeout=120).status_code


def read_welcome(printed: IO[str]) -> str:
    lines = [printed.readline()]
    while lines[-1] and not lines[-1].startswith(("Create an API key", "    -d ")):
        lines.append(printed.readline())
    return "".join(lines)


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Operator:
    for name in os.environ:
        if name.startswith("POSTROOM_"):
            monkeypatch.delenv(name)
    defaults = {
        "DATA_DIR": str(tmp_path / "data"),
        "HTTP": "127.0.0.1:0",
        "SMTP": "127.0.0.1:0",
        "WORKERS": "0",  # whoever follows the documents starts all of it
    }
    for name, value in defaults.items():
        monkeypatch.setenv(f"POSTROOM_{name}", value)
    return Operator(tmp_path / "data", monkeypatch.setenv, capfd.readouterr)


@pytest.fixture
def running(operator: Operator) -> Iterator[Running]:
    with operator.serving() as running:
        yield running


def printed_curl(welcome: str) -> str:
    return welcome[welcome.index("curl ") :]


def run_as_printed(command: str) -> dict[str, object]:
    """By the shell; on a machine without curl, by reading what the shell would hand to it."""
    if shutil.which("curl"):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
        answer: dict[str, object] = json.loads(done.stdout)
        return answer
    _, _, method, url, _, authorization, _, content_type, _, body = shlex.split(command)
    headers = dict(header.split(": ", 1) for header in (authorization, content_type))
    sent: dict[str, object] = httpx2.request(
        method, url, headers=headers, content=body, verify=trusting()
    ).json()
    return sent


@pytest.mark.parametrize("settings", [{}, {"API_KEY": """pr_$HOME'"`\\&;quoted-for-the-shell"""}])
def test_serve_prints_a_key_and_a_curl_that_work_as_printed(
    operator: Operator, settings: dict[str, str]
) -> None:
    with operator.serving(makes_database=True, **settings) as running:
        inbox = run_as_printed(printed_curl(running.welcome))
        assert inbox["address"] == "hello@postroom.localhost"
        assert (
            running.status(settings.get("API_KEY") or running.welcome.split("API key")[1].split()[0]) == 200
        )


def test_the_key_is_printed_by_the_first_start_alone(operator: Operator) -> None:
    with operator.serving() as first:
        assert "API key" in first.welcome
    with operator.serving() as second:
        assert not re.search(r"pr_\w", second.welcome)
        assert "postroom keys create" in second.welcome


def test_a_server_on_a_new_folder_keeps_the_profile_of_the_other_and_says_under_which_name_its_own_is(
    operator: Operator, tmp_path: Path
) -> None:
    with operator.serving(API_KEY="pr_0123456789-first") as first:
        wait_for_profile("local")
        with operator.serving(API_KEY="pr_0123456789-second", DATA_DIR=str(tmp_path / "new")) as second:
            said = ""
            while "saved as profile 'local-2' (to use it: postroom profiles use local-2)" not in said:
                said += operator.read_output()[1]
                assert second.process.poll() is None, said
                time.sleep(0.02)
    kept = profiles.load()
    assert kept.current == "local"
    assert kept.profiles == {
        "local": Profile(first.base_url, "pr_0123456789-first"),
        "local-2": Profile(second.base_url, "pr_0123456789-second"),
    }


def wait_for_profile(name: str) -> None:
    """Saved right after the welcome."""
    deadline = time.monotonic() + 60
    while profiles.load().find(name) is None:
        assert time.monotonic() < deadline, name
        time.sleep(0.02)


def test_serve_ends_at_a_signal_with_success(running: Running) -> None:
    port = int(running.base_url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as idle:
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.1 200"
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait() == 0
    assert running.process.stdout is not None
    key, goodbye = running.process.stdout.read().strip().splitlines()
    assert (str(profiles.file_path()) in key, goodbye.partition(".")[0]) == (True, "Postroom has stopped")


def test_a_second_server_on_the_folder_says_so_and_exits(operator: Operator, running: Running) -> None:
    second = operator.run("serve")
    assert second.returncode == 1
    assert f"process {running.process.pid}" in second.stderr
    assert str(operator.folder) in second.stderr
    assert running.status("pr_wrong") == 401  # the first is unharmed


COLUMNS = ["id", "name", "plan", "inboxes", "storedBytes", "storageLimitBytes", "createdAt"]


def test_the_operators_commands_answer_and_fail_in_json_where_it_is_asked_for(operator: Operator) -> None:
    operator.make_database()
    assert operator.read("migrate") == {"upToDate": True}
    failed = operator.run("accounts", "rename", "nobody", "x", "--json")
    assert (failed.returncode, json.loads(failed.stderr)["error"]) == (1, "not_found")


def test_an_account_made_beside_the_server_works_at_once(operator: Operator, running: Running) -> None:
    made = operator.read("accounts", "create", "--name", "Möbel & Co", "--plan", "business")
    assert isinstance(made, dict)
    assert (made["name"], made["plan"]) == ("Möbel & Co", "business")
    assert running.status(made["key"]) == 200
    listed = operator.read("accounts", "list")["data"]
    assert [account["name"] for account in listed] == ["default", "Möbel & Co"]
    assert set(listed[1]) == {*COLUMNS}
    assert made["id"] == listed[1]["id"]


def test_a_key_is_made_listed_and_revoked_at_once(operator: Operator, running: Running) -> None:
    unheeded = operator.run("keys", "create", "--account", "default", "--permission", "read")
    assert (unheeded.returncode, unheeded.stdout) == (2, "")
    made = operator.read("keys", "create", "--account", "default", "--name", "ci")
    assert isinstance(made, dict)
    assert running.status(made["key"]) == 200
    listed = operator.read("keys", "list", "--account", "default")["data"]
    assert [key["name"] for key in listed] == ["first key", "ci"]
    assert made["key"] not in json.dumps(listed)
    revoked = operator.run("keys", "revoke", made["id"], "--account", "default")
    assert (revoked.returncode, revoked.stdout) == (0, f"{made['id']} is revoked.\n")
    assert running.status(made["key"]) == 401
    again = operator.run("keys", "revoke", made["id"], "--account", "default")
    advice = "Check its id or name, and the scope of your API key."
    assert (again.returncode, again.stderr) == (1, f"postroom: No such key. {advice}\n")


def test_people_get_a_table_and_the_secret_once(operator: Operator) -> None:
    operator.make_database()
    empty = operator.run("accounts", "list", "--no-json")
    assert (empty.stdout, empty.returncode) == ("", 0)
    assert "postroom accounts create" in empty.stderr
    made = operator.run("accounts", "create", "--name", "shop", "--no-json")
    token = re.search(r"^key +(pr_\S+)$", made.stdout, re.MULTILINE)
    assert token is not None
    assert "shown only once" in made.stderr
    key = operator.run("keys", "create", "--account", "shop", "--name", "second", "--no-json")
    assert re.search(r"^key +pr_\S+$", key.stdout, re.MULTILINE)
    table = operator.run("accounts", "list", "--no-json").stdout.splitlines()
    assert table[0].split() == "ID NAME PLAN INBOXES STORED BYTES STORAGE LIMIT BYTES CREATED AT".split()
    assert table[1].split()[1:4] == ["shop", "free", "0"]
    shown = operator.run("keys", "list", "--account", "shop", "--no-json").stdout
    assert [line.split()[1] for line in shown.splitlines()] == ["NAME", "first", "second"]
    assert token[1] not in shown


def test_migrate_brings_the_database_up_to_date(operator: Operator) -> None:
    operator.make_database()
    with closing(sqlite3.connect(operator.folder / "postroom.db")) as connection, connection:
        newest = connection.execute("select max(number) from schema_versions").fetchone()[0]
    assert operator.run("migrate").stdout == "The database is up to date.\n"
    with closing(sqlite3.connect(operator.folder / "postroom.db")) as connection:
        assert connection.execute("select max(number) from schema_versions").fetchone()[0] == newest


def test_an_import_of_an_export_creates_its_aliases_unless_told_not_to(
    operator: Operator, tmp_path: Path
) -> None:
    operator.make_database()
    made = operator.read("accounts", "create", "--name", "shop")["id"]

    async def work(resources: Resources) -> None:
        for name in ("one", "two"):
            await resources.db.write(
                inboxes.add, made, name, None, None, resources.config.domain, resources.now()
            )

    with_resources(work)
    folder = tmp_path / "exported"
    exported = [
        {"address": "one@postroom.localhost", "aliases": ["sales@postroom.localhost"]},
        {"address": "two@postroom.localhost", "aliases": ["one@postroom.localhost"]},
    ]
    for each in exported:
        (folder / str(each["address"])).mkdir(parents=True)
        for name in ("mail.mbox", "messages.jsonl"):
            (folder / str(each["address"]) / name).touch()
    (folder / "account.json").write_text(json.dumps({"inboxes": exported}))
    refused = operator.run("import", "export", str(folder))
    assert refused.returncode == 1
    assert "one@postroom.localhost of two@postroom.localhost" in refused.stderr
    assert "Traceback" not in refused.stderr
    told = {"imported": 0, "leftOut": 0, "aliases": 0}
    assert operator.read("import", "export", str(folder), "--no-aliases") == told
    assert operator.read("import", "export", str(folder), "--inbox", "two@postroom.localhost") == told
    exported[1]["aliases"] = []
    (folder / "account.json").write_text(json.dumps({"inboxes": exported}))
    assert [operator.read("import", "export", str(folder))["aliases"] for _ in range(2)] == [1, 0]


NEED_A_DATABASE = {
    "accounts list": ["accounts", "list"],
    "accounts create": ["accounts", "create", "--name", "shop"],
    "accounts rename": ["accounts", "rename", "shop", "store"],
    "accounts plan": ["accounts", "plan", "shop", "business"],
    "accounts change": ["accounts", "change", "shop", "--sends-per-day", "5"],
    "accounts delete": ["accounts", "delete", "shop", "--yes"],
    "accounts export": ["accounts", "export", "shop", "exported"],
    "keys create": ["keys", "create", "--account", "shop", "--name", "x"],
    "keys list": ["keys", "list", "--account", "shop"],
    "keys revoke": ["keys", "revoke", "key_x", "--account", "shop"],
    "domains show": ["domains", "show"],
    "login-link": ["login-link"],
    "migrate": ["migrate"],
    "certificates": ["certificates"],
    "backup": ["backup", "all.backup"],
    "import a mailbox": ["import", "imap://a:b@127.0.0.1:1/", "--inbox", "hello@postroom.localhost"],
    "import": ["import", "mbox", "/dev/null", "--inbox", "hello@postroom.localhost"],
}


@pytest.mark.parametrize("arguments", NEED_A_DATABASE.values(), ids=NEED_A_DATABASE.keys())
@pytest.mark.parametrize("has_folder", [True, False])
def test_a_command_where_no_server_was_says_so_and_makes_nothing(
    operator: Operator,
    arguments: list[str],
    has_folder: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    if has_folder:
        operator.folder.mkdir()
    before = sorted(tmp_path.rglob("*"))
    done = operator.run(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no database in {operator.folder}" in done.stderr
    assert "postroom serve" in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def empty_postgres_url() -> Iterator[str]:
    with new_postgres_database("template0") as url:
        yield url


def test_a_command_on_an_empty_postgresql_database_says_so_and_makes_no_table(
    empty_postgres_url: str, operator: Operator
) -> None:
    for arguments in (["accounts", "list"], ["migrate"]):
        done = operator.run(*arguments, DATABASE_URL=empty_postgres_url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "there are no tables of Postroom in this database" in done.stderr
        assert "postroom serve" in done.stderr
    with psycopg.connect(empty_postgres_url) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public'")
        assert tables.fetchall() == []


WRONG_ARGUMENTS = {
    "an unknown plan": ["accounts", "create", "--name", "x", "--plan", "gold"],
    "no name": ["accounts", "create"],
    "an empty name": ["accounts", "create", "--name", " "],
    "a name with a line break": ["accounts", "create", "--name", "a\nb"],
    "a name that is not UTF-8": ["accounts", "create", "--name", "\udcff"],
    "an unknown account": ["keys", "create", "--account", "nobody", "--name", "x"],
    "an account that is not UTF-8": ["keys", "list", "--account", "\udcff"],
    "an unknown key": ["keys", "revoke", "key_x", "--account", "default"],
    "a key that is not UTF-8": ["keys", "revoke", "\udcff", "--account", "default"],
    "an unknown command": ["frobnicate"],
    "an unknown option": ["serve", "--frobnicate"],
}


@pytest.mark.parametrize("arguments", WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS.keys())
def test_a_wrong_argument_is_refused_without_a_traceback(operator: Operator, arguments: list[str]) -> None:
    operator.make_database()
    done = operator.run(*arguments)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert operator.read("accounts", "list") == {"data": [], "total": 0}


WRONG_SETTINGS = [
    ("HTTP", "8025"),
    ("HTTP", "127.0.0.1:http"),
    ("HTTP", "127.0.0.1:65536"),
    ("HTTP", "127.0.0.1:" + "0" * 5_000),
    ("HTTP", "[]:8025"),
    ("HTTP", "no.such.host.invalid:8025"),
    ("HTTP", "é..x:8025"),
    ("SMTP", "2525"),
    ("BASE_URL", "mail.example.com"),
    ("BASE_URL", "https://mail.example.com?x=1"),
    ("BASE_URL", "https://mail example.com"),
    ("BASE_URL", "https://mail.example.com:99999"),
    ("DOMAIN", "two words"),
    ("DOMAIN", "-x.example"),
    ("DATABASE_URL", "mysql://here/x"),
    ("DATABASE_URL", "postgresql://127.0.0.1:1/x"),
    ("DATABASE_URL", "postgresql://[x"),
    ("API_KEY", "secret"),
    ("PLAN", "gold"),
    ("DATA_DIR", "~nobody-by-this-name/data"),
    ("DATA_DIR", "/proc/nothing"),
]


@pytest.mark.parametrize(("name", "value"), WRONG_SETTINGS, ids=lambda part: part[:40])
def test_a_wrong_setting_stops_the_start_with_one_line_that_names_it(
    operator: Operator, name: str, value: str
) -> None:
    done = operator.run("serve", **{name: value})
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"postroom: POSTROOM_{name}: ")
    assert done.stderr.count("\n") == 1


def test_a_flag_is_checked_like_its_setting_and_comes_before_it(operator: Operator) -> None:
    done = operator.run("serve", "--plan", "gold", PLAN="business")
    assert (done.returncode, done.stderr.split(":")[1]) == (1, " POSTROOM_PLAN")


def test_a_port_in_use_stops_the_start_with_one_line(operator: Operator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
        done = operator.run("serve", HTTP=address)
    assert done.returncode == 1
    assert done.stderr.startswith(f"postroom: POSTROOM_HTTP: cannot listen on {address}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["postroom.lock", "postroom.db", "blobs"])
def test_a_data_folder_that_cannot_be_used_stops_the_start_with_one_line(
    operator: Operator, name: str
) -> None:
    operator.folder.mkdir()
    if name == "blobs":
        (operator.folder / name).write_text("a file where a folder should be")
    else:
        (operator.folder / name).mkdir()
    done = operator.run("serve")
    assert done.returncode == 1
    assert done.stderr.startswith("postroom: POSTROOM_DATA_DIR: ")
    assert name in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_data_folder_that_is_a_file_stops_every_command(operator: Operator) -> None:
    operator.folder.write_text("not a folder")
    for arguments in (["serve"], ["accounts", "list"], ["migrate"]):
        done = operator.run(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert done.stderr.startswith("postroom: POSTROOM_DATA_DIR: ")
    assert operator.folder.read_text() == "not a folder"


def test_a_file_that_is_no_database_is_refused_and_kept(operator: Operator) -> None:
    operator.folder.mkdir()
    database = operator.folder / "postroom.db"
    database.write_bytes(b"precious, but no database" * 100)
    done = operator.run("serve")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert database.read_bytes() == b"precious, but no database" * 100


def test_a_folder_of_a_newer_version_is_refused_and_not_changed(operator: Operator) -> None:
    operator.make_database()
    assert operator.run("accounts", "create", "--name", "shop").returncode == 0
    database = operator.folder / "postroom.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("insert into schema_versions (number, applied_at) values (9999, 0)")
    before = database.read_bytes()
    for arguments in (
        ["serve"],
        ["accounts", "list"],
        ["keys", "revoke", "key_x", "--account", "default"],
        ["migrate"],
    ):
        done = operator.run(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "newer Postroom" in done.stderr
    assert database.read_bytes() == before


def test_a_folder_from_before_the_first_release_is_refused_in_one_line(operator: Operator) -> None:
    operator.make_database()
    assert operator.run("accounts", "create", "--name", "shop").returncode == 0
    with closing(sqlite3.connect(operator.folder / "postroom.db")) as connection, connection:
        connection.execute("delete from schema_versions where number > 100")
        connection.execute("update schema_versions set number = 21")
    for arguments in (["serve"], ["accounts", "list"], ["migrate"]):
        done = operator.run(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "schema 21, of an early build of Postroom 1.0.0" in done.stderr


def test_an_account_is_renamed_gets_another_plan_and_is_deleted(operator: Operator) -> None:
    operator.make_database()
    operator.run("accounts", "create", "--name", "first")
    made = operator.read("accounts", "create", "--name", "shop", "--storage", "10 GB")
    assert isinstance(made, dict)
    assert "called 'store'" in operator.run("accounts", "rename", "shop", "store").stdout
    assert operator.run("accounts", "rename", "store", "first").returncode == 1
    shown = operator.read("accounts", "plan", "store", "business", "--storage", "500MB")
    assert isinstance(shown, dict)
    assert (shown["plan"], shown["storageLimitBytes"]) == ("business", "500000000")
    shown = operator.read("accounts", "plan", made["id"], "--storage", "none")
    assert isinstance(shown, dict)
    assert (shown["plan"], shown["storageLimitBytes"]) == ("business", "none")
    assert operator.run("accounts", "plan", "store", "--storage", "much").returncode == 2
    shown = operator.read("accounts", "change", "store", "--sends-per-day", "0", "--cold-per-day", "7")
    assert isinstance(shown, dict)
    assert (shown["sendsPerDay"], shown["coldPerDay"], shown["sendsPerMinute"]) == ("none", "7", "10")
    shown = operator.read("accounts", "change", "store", "--cold-per-day", "default")
    assert isinstance(shown, dict)
    assert (shown["sendsPerDay"], shown["coldPerDay"]) == ("none", "20")
    assert operator.run("accounts", "change", "store", "--sends-per-day", "-1").returncode == 2
    assert operator.run("accounts", "delete", "first", "--yes").returncode == 1
    assert operator.run("accounts", "delete", "store", "--yes").returncode == 0
    listed = operator.read("accounts", "list")["data"]
    assert [account["name"] for account in listed] == ["first"]


def test_certificates_are_listed_and_ordered_now(operator: Operator) -> None:
    assert operator.run("migrate").returncode == 1
    assert operator.run("migrate", "--create").returncode == 0
    assert operator.read("certificates")["data"] == []
    with closing(sqlite3.connect(operator.folder / "postroom.db")) as connection, connection:
        connection.execute(
            "insert into acme_certificates (name, names, due_at, failures, error)"
            " values ('mail.example.com', 'mail.example.com a.example.com', 4102444800000, 1, 'no answer')"
        )
    (before,) = operator.read("certificates")["data"]
    assert before["nextOrderAt"].startswith("2100-01-01")
    assert (before["names"], before["error"]) == ("mail.example.com a.example.com", "no answer")
    (after,) = operator.read("certificates", "--order")["data"]
    assert after["nextOrderAt"] < before["nextOrderAt"]


def test_every_change_by_a_command_stands_in_the_audit_log_as_the_operators(operator: Operator) -> None:
    operator.make_database()
    first = operator.read("accounts", "create", "--name", "first")["id"]
    shop = operator.read("accounts", "create", "--name", "shop")["id"]
    operator.run("accounts", "rename", "shop", "store")
    operator.run("accounts", "plan", "store", "business")
    operator.run("accounts", "plan", "store")
    operator.run("accounts", "change", "store", "--sends-per-day", "5")
    key = operator.read("keys", "create", "--account", "store", "--name", "ci")["id"]
    operator.run("keys", "revoke", key, "--account", "store")
    assert "/app/sign-in?link=" in operator.run("login-link", "--account", "store").stdout
    assert audit_of(operator, shop) == [
        ("account.created", shop),
        ("key.created", audit_of(operator, shop)[1][1]),
        ("account.renamed", shop),
        ("account.plan_changed", shop),
        ("account.limits_changed", shop),
        ("key.created", key),
        ("key.revoked", key),
        ("login_link.created", shop),
    ]
    operator.run("accounts", "delete", "store", "--yes")
    assert audit_of(operator, first)[2:] == [("account.deleted", shop)]


def audit_of(operator: Operator, account_id: str) -> list[tuple[str, str]]:
    """What the operator's commands did, oldest first."""
    with closing(sqlite3.connect(operator.folder / "postroom.db")) as connection:
        rows = connection.execute(
            "select action, target from audit where account_id = ? and actor_type = 'system'"
            " and actor_id = 'operator' and actor_name = 'The operator''s command' order by rowid",
            [account_id],
        )
        return rows.fetchall()


def test_a_command_makes_no_more_keys_than_an_account_may_have(operator: Operator) -> None:
    operator.make_database()
    operator.run("accounts", "create", "--name", "shop")
    with closing(sqlite3.connect(operator.folder / "postroom.db")) as connection, connection:
        connection.execute("create temp table copied as select * from keys")
        for number in range(99):
            connection.execute("update copied set id = ?, token_hash = ?", [f"key_{number}", f"{number}"])
            connection.execute("insert into keys select * from copied")
    refused = operator.run("keys", "create", "--account", "shop")
    assert (refused.returncode, "at most 100 keys" in refused.stderr) == (1, True)


def test_a_backup_is_made_and_restored_by_command(operator: Operator, tmp_path: Path) -> None:
    operator.make_database()
    operator.run("accounts", "create", "--name", "first")
    path = tmp_path / "all.backup"
    assert "is complete" in operator.run("backup", str(path)).stdout
    assert operator.run("backup", str(path)).returncode == 2
    assert "empty data folder" in operator.run("restore", str(path)).stderr
    again = operator.run("restore", str(path), DATA_DIR=str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    listed = operator.read("accounts", "list")
    assert isinstance(listed, dict)
    assert [account["name"] for account in listed["data"]] == ["first"]

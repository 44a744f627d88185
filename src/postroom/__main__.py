"""The operator's commands, added to the client's: serve, migrate, accounts, keys of any account."""

import asyncio
import gc
import inspect
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from postroom import tables
from postroom.config import PLANS, SETTINGS, Config, ConfigError, Plan, Setting, load, unknown_settings
from postroom_client.cli import app
from postroom_client.cli import domains as domain_commands
from postroom_client.cli import keys as key_commands
from postroom_client.cli.command import Limit, Offset, command, group, in_order
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom.accounts.accounts import Account
    from postroom.accounts.keys import Key
    from postroom.assembly import Postroom
    from postroom.storage.database import Database, Tx
    from postroom_client.profiles import SavedProfile

T = TypeVar("T")

# A busy event loop would keep the writer waiting Python's usual 5 ms at each of a mail's dozen statements.
SWITCH_SECONDS = 0.0005

accounts_app = group("Accounts own inboxes and keys (on the server's machine).")
app.add_typer(accounts_app, name="accounts")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
OneAccount = Annotated[str, typer.Option("--account", help="Id or name of the account.")]
AccountOption = Annotated[
    str | None,
    typer.Option("--account", help="Id or name of an account: on the server's machine, without a key."),
]


def with_a_flag_for_each_setting(serve: Callable[..., None]) -> Callable[..., None]:
    """Gives `serve` the signature from which its options are made."""
    serve.__dict__["__signature__"] = inspect.Signature(
        [
            inspect.Parameter(
                setting.flag,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[str | None, typer.Option(help=help_of(setting), show_default=False)],
            )
            for setting in SETTINGS
        ]
    )
    return serve


def help_of(setting: Setting) -> str:
    return f"{setting.help} [{setting.name}, default: {setting.default or 'none'}]"


@app.command()
@with_a_flag_for_each_setting
def serve(**flags: str | None) -> None:
    """Start the server."""
    given = {f"POSTROOM_{flag.upper()}": value for flag, value in flags.items() if value is not None}
    config = load({**os.environ, **given})
    if unknown := unknown_settings(os.environ):
        print(f"postroom: no such setting: {', '.join(unknown)}", file=sys.stderr)
    sys.setswitchinterval(SWITCH_SECONDS)
    _run_in_loop(_serve(config))


async def _serve(config: Config) -> None:
    from postroom.assembly import serving
    from postroom.welcome import welcome

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with serving(config) as postroom:
        print(welcome(postroom), flush=True)
        await _note_key(postroom)
        gc.freeze()  # all that is here now stays: no collection needs to look at it again
        await stopping.wait()


async def _note_key(postroom: "Postroom") -> None:
    """The first key becomes a profile, so that the next command here works without any setting."""
    from postroom.accounts import keys
    from postroom_client import profiles

    config = postroom.resources.config
    if postroom.first_token is not None:
        try:
            saved = profiles.save_local(config.base_url, postroom.first_token)
        except OSError as error:
            print(f"postroom: no profile was saved: {error}", file=sys.stderr)
        else:
            _say_which_profile(saved)
    elif (
        config.api_key
        and await postroom.resources.db.read(keys.find_caller, config.api_key, postroom.resources.now())
        is None
    ):
        print("postroom: POSTROOM_API_KEY is no key here: only a first start uses it", file=sys.stderr)


def _say_which_profile(saved: "SavedProfile") -> None:
    from postroom_client import profiles

    if saved.name == profiles.LOCAL:
        return
    use = "now in use" if saved.is_current else f"to use it: postroom profiles use {saved.name}"
    print(
        f"postroom: the profile '{profiles.LOCAL}' of another server is kept;"
        f" the key is saved as profile '{saved.name}' ({use})",
        file=sys.stderr,
    )


@app.command("login-link")
def login_link(
    account: OneAccount = "default",
    operator: Annotated[bool, typer.Option("--operator", help="With the operator's pages.")] = False,
) -> None:
    """Print a link that opens the pages of an account once (on the server's machine)."""
    from postroom.accounts import sessions
    from postroom.welcome import link_url

    token = sessions.new_token()
    _write(lambda tx, now: sessions.add_link(tx, _require_account(tx, account).id, operator, token, now))
    print(link_url(load(os.environ), token))


@app.command()
def migrate() -> None:
    """Bring the database to this version's schema (serve does it too)."""

    async def nothing_more(db: "Database", config: Config) -> None:
        print("The database is up to date.")

    _with_database(nothing_more)


@accounts_app.command("create")
def create_account(
    name: Annotated[str, typer.Option(help="What to call it.")],
    plan: Annotated[str, typer.Option(help=f"One of {', '.join(PLANS)}.")] = "free",
    as_json: Json = False,
) -> None:
    """Create an account and print its key, once."""
    from postroom.accounts import accounts, audit, keys

    token = keys.new_token()
    known_plan = _require_plan(plan)

    def create(tx: "Tx", now: int) -> "Account":
        account = accounts.add(tx, name, known_plan, now)
        key = keys.add(tx, account.id, None, "first key", token, now)
        audit.record_command(tx, "key.created", key.id, account.id, now)
        return account

    account = _write(create)
    shown = {"id": account.id, "name": account.name, "plan": account.plan, "key": token}
    tables.print_record(shown, as_json, note="The key is shown only now: keep it.")


@accounts_app.command("list")
def list_accounts(as_json: Json = False) -> None:
    """List the accounts, oldest first."""
    from postroom.accounts import accounts
    from postroom.clock import to_iso

    rows = [
        {
            "id": account.id,
            "name": account.name,
            "plan": account.plan,
            "inboxes": account.inbox_count,
            "createdAt": to_iso(account.created_at),
        }
        for account in _read(accounts.list_all)
    ]
    tables.print_table(rows, as_json, empty="No account yet: postroom accounts create --name NAME")


@command(key_commands.app, "create")
def create_key(
    desk: Desk,
    name: key_commands.KeyName = "",
    pod_id: key_commands.OfPod = None,
    permission: key_commands.Permission = None,
    expires_at: key_commands.ExpiresAt = None,
    account: AccountOption = None,
) -> None:
    """Create a key of the account, or of a pod, and show it once."""
    if account is None:
        key_commands.create(desk, name, pod_id, permission, expires_at)
        return
    from postroom.accounts import audit, keys

    token = keys.new_token()

    def create(tx: "Tx", now: int) -> "Key":
        key = keys.add(tx, _require_account(tx, account).id, None, name, token, now)
        audit.record_command(tx, "key.created", key.id, key.account_id, now)
        return key

    key = _write(create)
    shown = {"id": key.id, "name": key.name, "key": token}
    tables.print_record(shown, desk.wants_json, note="The key is shown only now: keep it.")


@command(key_commands.app, "list")
def list_keys(
    desk: Desk,
    pod_id: key_commands.OfPod = None,
    limit: Limit = 50,
    offset: Offset = 0,
    account: AccountOption = None,
) -> None:
    """List the keys of the account, or of a pod, oldest first."""
    if account is None:
        key_commands.list_all(desk, pod_id, limit, offset)
        return
    from postroom.accounts import keys
    from postroom.clock import to_iso

    rows = [
        {
            "id": key.id,
            "name": key.name,
            "key": f"{key.token_prefix}…{key.last4}",
            "inbox": key.inbox_id or "all",
            "createdAt": to_iso(key.created_at),
            "lastUsedAt": "never" if key.last_used_at is None else to_iso(key.last_used_at),
        }
        for key in _read(lambda tx: keys.list_of_account(tx, _require_account(tx, account).id))
    ]
    tables.print_table(
        rows, desk.wants_json, empty="No key: postroom keys create --account ACCOUNT --name NAME"
    )


@command(key_commands.app, "revoke")
def revoke_key(desk: Desk, key_id: key_commands.KeyArgument, account: AccountOption = None) -> None:
    """Revoke a key, at once, also on open streams."""
    if account is None:
        key_commands.revoke(desk, key_id)
        return
    from postroom.accounts import audit, keys
    from postroom.errors import NotFound

    def revoke(tx: "Tx", now: int) -> None:
        own = keys.list_of_account(tx, _require_account(tx, account).id)
        if key_id not in {key.id for key in own}:
            raise NotFound("No such key.")
        audit.record_command(tx, "key.revoked", key_id, keys.remove(tx, key_id), now)

    _write(revoke)
    print(f"{key_id} is revoked.")


@command(domain_commands.app, "show")
def show_domains(desk: Desk, domain_id: Annotated[str | None, typer.Argument(help="dom_…")] = None) -> None:
    """Show a domain and its DNS records; without an id, on the server's machine, all that is served there."""
    if domain_id is not None:
        domain_commands.show(desk, domain_id)
        return
    from postroom.first_start import make_service_key

    async def work(db: "Database", config: Config) -> list[dict[str, Any]]:
        await make_service_key(db, config.domain)
        return await db.read(_describe_domains, config.domain)

    found = _with_database(work)
    if desk.is_json:
        print(json.dumps(found))
        return
    for domain in found:
        print(f"{domain['domain']} ({domain['status']})")
        for record in domain["records"]:
            note = "" if record["required"] else " (recommended)"
            print(
                f"\n  # {record['purpose']}{note}\n  {record['name']}. {record['type']} {_zone_value(record)}"
            )
        print()


def _describe_domains(tx: "Tx", service_domain: str) -> list[dict[str, Any]]:
    from postroom.accounts import domains

    owners = [(domains.SERVICE, service_domain, "the service's own")] + [
        (domain.account_id, domain.name, "verified" if domain.verified_at else "not verified yet")
        for domain in domains.list_all(tx)
    ]
    shown = []
    for owner, name, status in owners:
        key = domains.find_key(tx, owner, name)
        assert key is not None
        records = [
            {
                "type": record.type,
                "name": record.name,
                "value": record.value,
                "purpose": record.purpose,
                "required": record.is_required,
            }
            for record in domains.records(name, service_domain, key)
        ]
        shown.append({"domain": name, "status": status, "records": records})
    return shown


def _zone_value(record: dict[str, Any]) -> str:
    """As a zone file writes it: a text in strings of at most 255 characters (RFC 1035 section 3.3.14)."""
    value: str = record["value"]
    if record["type"] != "TXT":
        return value
    return " ".join(f'"{value[at : at + 255]}"' for at in range(0, len(value), 255))


def _require_plan(plan: str) -> Plan:
    for known in PLANS:
        if plan == known:
            return known
    raise typer.BadParameter(f"must be one of {', '.join(PLANS)}", param_hint="--plan")


def _require_account(tx: "Tx", id_or_name: str) -> "Account":
    from postroom.accounts import accounts
    from postroom.errors import NotFound

    account = accounts.find(tx, id_or_name)
    if account is None:
        raise NotFound(f"No single account is called '{id_or_name}'. See: postroom accounts list")
    return account


def _read(fn: "Callable[[Tx], T]") -> T:
    async def work(db: "Database", config: Config) -> T:
        return await db.read(fn)

    return _with_database(work)


def _write(fn: "Callable[[Tx, int], T]") -> T:
    from postroom.clock import SystemClock

    async def work(db: "Database", config: Config) -> T:
        return await db.write(fn, SystemClock().now())

    return _with_database(work)


def _with_database(work: "Callable[[Database, Config], Awaitable[T]]") -> T:
    from postroom.assembly import open_database
    from postroom.clock import SystemClock

    async def main() -> T:
        config = load(os.environ)
        db = await open_database(config, SystemClock().now())
        try:
            return await work(db, config)
        finally:
            await db.close()

    return _run_in_loop(main())


def _run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def main(arguments: list[str] | None = None) -> None:
    from postroom.errors import ApiError
    from postroom.storage.database import StorageError

    try:
        app(in_order(sys.argv[1:] if arguments is None else arguments))
    except (ConfigError, StorageError, ApiError) as error:
        sys.exit(f"postroom: {error}")


if __name__ == "__main__":
    main()

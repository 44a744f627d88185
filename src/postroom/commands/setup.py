"""`postroom setup HOST`: makes this machine a mail host, and says what works."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import app, output
from postroom_client.cli.command import command
from postroom_client.cli.context import FAILED, CommandContext

if TYPE_CHECKING:
    from postroom.commands.setup_steps import SetupSteps

MARKS = {"pass": "ok", "warn": "warn", "fail": "FAIL"}
UNIT = Path("/etc/systemd/system/postroom.service")

Host = Annotated[str, typer.Argument(help="Name of this mail host, as mail.example.com.")]
Owner = Annotated[str, typer.Option(metavar="ADDRESS", help="Your email address, on another server.")]
InboxName = Annotated[str, typer.Option("--inbox", metavar="NAME", help="First inbox, in front of the @.")]
Acme = Annotated[str, typer.Option(help="on, off, or the URL of an ACME directory.")]
Dns = Annotated[str, typer.Option(help="DNS provider, as POSTROOM_DNS; show: only print the records.")]
RelayUrl = Annotated[
    str, typer.Option("--relay", metavar="URL", help="Send through it, as POSTROOM_OUTBOUND.")
]
Address = Annotated[
    list[str],
    typer.Option(metavar="IP", help="Public address, IPv4 or IPv6, if this machine is behind a NAT."),
]
UserName = Annotated[str, typer.Option("--user", help="System user of the service.")]
DataDir = Annotated[Path, typer.Option("--data-dir", help="Data folder.")]
UnitFile = Annotated[Path, typer.Option("--unit", help="Unit file of systemd.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace DNS records that have other values.")]
Yes = Annotated[bool, typer.Option("--yes", help="Ask nothing: take options, settings and defaults.")]


@command(app, "setup")
def setup(
    context: CommandContext,
    host: Host,
    owner: Owner = "",
    inbox: InboxName = "agent",
    acme: Acme = "",
    dns: Dns = "",
    relay: RelayUrl = "",
    address: Address = [],  # noqa: B006 (typer makes a new one)
    user: UserName = "postroom",
    data_dir: DataDir = Path("/var/lib/postroom"),
    unit: UnitFile = UNIT,
    replace: Replace = False,
    yes: Yes = False,
) -> None:
    """Make this machine a mail host: settings, service, DNS, certificates, first inbox, test email."""
    from postroom.commands.setup_steps import SetupSteps
    from postroom.host_setup.questions import SetupOptions
    from postroom.host_setup.settings_file import find_settings_path
    from postroom.host_setup.systemd import Service, SetupFailed
    from postroom.setting_values import domain

    is_root = os.geteuid() == 0
    settings = find_settings_path(os.environ, is_root)
    kept = Path(os.environ.get("POSTROOM_DATA_DIR") or data_dir)
    program = str(Path(sys.prefix) / "bin" / "postroom")
    service = Service(user if is_root else "", settings, kept, unit if is_root else None, program)
    token = os.environ.get("POSTROOM_DNS_TOKEN", "")
    host = domain("HOST", host)
    options = SetupOptions(host, owner, acme, dns, token, relay, asks=not yes and output.can_ask())
    steps = SetupSteps(service, options, inbox, address, replace)
    try:
        steps.run()
    except SetupFailed as error:
        steps.fail("setup", str(error), "Mend this and run the same command again.")
    finally:
        steps.close()
    _show(context, steps)


def _show(context: CommandContext, steps: "SetupSteps") -> None:
    raw = output.encode({"checks": [each.to_json() for each in steps.findings], "changed": steps.changed})
    context.show_result(raw, steps, _print)
    if any(each.verdict == "fail" for each in steps.findings):
        raise typer.Exit(FAILED)


def _print(steps: "SetupSteps") -> None:
    from postroom.commands.setup_steps import SET_THIS

    mark = ("", lambda item: MARKS[item.verdict])
    output.print_table((mark, "check name", "found detail"), steps.findings)
    lines = [each.next_step for each in steps.findings if each.next_step.startswith(SET_THIS)]
    for item in steps.findings:
        if item.next_step and item.next_step not in lines:
            output.note(f"{item.name}: {item.next_step}")
    if lines:
        output.note("Set these DNS records:")
        output.note("\n".join(line.removeprefix(SET_THIS) for line in lines))
    output.note(f"Changed: {', '.join(steps.changed)}." if steps.changed else "Nothing had to be changed.")

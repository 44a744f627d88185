"""`postroom serve`, and a flag for each setting."""

import inspect
import os
import re
from collections.abc import Callable
from typing import Annotated

import typer

from postroom.config import SETTINGS, Setting
from postroom.setting_meanings import MEANINGS
from postroom_client.cli import app

ORDER = list(MEANINGS)


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
            for setting in sorted(SETTINGS, key=lambda setting: ORDER.index(setting.name))
        ]
    )
    return serve


def help_of(setting: Setting) -> str:
    """Return the meaning without marks and targets of links, then the variable and the default."""
    meaning = re.sub(r" \[More\]\([^ )]+\)\.", "", MEANINGS[setting.name])
    meaning = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", meaning).replace("`", "")
    return f"{meaning} [{setting.name}, default: {setting.default or 'none'}]"


@app.command("serve")
@with_a_flag_for_each_setting
def serve(**flags: str | None) -> None:
    """Start the server."""
    from postroom.commands import server

    given = {f"POSTROOM_{flag.upper()}": value for flag, value in flags.items() if value is not None}
    server.run({**os.environ, **given})

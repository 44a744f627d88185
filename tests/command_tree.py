"""Every command of the program, built once: to build them takes longer than most tests of one."""

import functools
from typing import Any

import typer.main

import postroom.commands.operator  # noqa: F401 (adds the operator's commands to the app)
from postroom_client.cli import app


@functools.cache
def command_tree() -> Any:
    return typer.main.get_command(app)


def command_called(*words: str) -> Any:
    """The one that these words call, or the group that they are in."""
    command = command_tree()
    for word in words:
        command = command.commands[word]
    return command

"""What the skill tells an agent to run exists."""

import re
from pathlib import Path
from typing import Any

from tests.command_tree import command_tree
from tests.samples import samples

SKILL = (Path(__file__).parents[2] / "skills" / "postroom" / "SKILL.md").read_text()
COMMANDS = sorted(set(re.findall(r"postroom ([a-z]+(?: [a-z]+)?)((?: [^`\n|]*)?)", SKILL)))


def leaf(words: list[str]) -> Any:
    command = command_tree()
    while words and hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return command


@samples(("words", "rest"), COMMANDS)
def test_a_named_command_and_its_options_exist(words: str, rest: str) -> None:
    command = leaf(words.split())
    assert not hasattr(command, "commands"), f"{words} is no whole command"
    known = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_the_skill_names_enough_to_check() -> None:
    assert len(COMMANDS) > 10

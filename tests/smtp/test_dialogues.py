"""Every rule of the protocol as a dialogue in plain text; `script.py` says how they are written."""

from pathlib import Path

from tests.samples import samples
from tests.smtp.script import Player, read_dialogue

DIALOGUES = sorted((Path(__file__).parent / "dialogues").glob("*.txt"))


@samples("path", DIALOGUES)
def test_the_dialogue_goes_as_written(path: Path) -> None:
    dialogue = read_dialogue(path)
    player = Player(dialogue.limits, dialogue.offers_tls)
    assert player.greet() == dialogue.turns[0].expected
    for turn in dialogue.turns[1:]:
        assert player.send(turn.sent) == turn.expected, turn.sent


@samples("path", [path for path in DIALOGUES if not read_dialogue(path).is_at_once])
def test_the_dialogue_goes_the_same_way_byte_by_byte(path: Path) -> None:
    dialogue = read_dialogue(path)
    player = Player(dialogue.limits, dialogue.offers_tls)
    assert player.greet() == dialogue.turns[0].expected
    for turn in dialogue.turns[1:]:
        assert player.send_in_bytes(turn.sent) == turn.expected, turn.sent


def test_there_are_dialogues() -> None:
    assert len(DIALOGUES) >= 20

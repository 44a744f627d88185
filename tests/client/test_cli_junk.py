"""postroom junk teach, on an mbox and a Maildir as other mail clients write them."""

import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from postroom_client.limits import LESSONS_TOGETHER
from tests.client.live import Shell


def written(number: int) -> EmailMessage:
    email = EmailMessage()
    email["From"], email["Subject"] = "dev@work.example", f"Patch {number}"
    email.set_content(f"From now on the plumbus has {number} grommets.")
    return email


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [(mailbox.mbox, range(LESSONS_TOGETHER + 1)), (mailbox.Maildir, range(100, 103))],
    ids=["mbox", "Maildir"],
)
def test_every_email_of_a_folder_teaches_once(
    shell: Shell, tmp_path: Path, kind: type[mailbox.mbox | mailbox.Maildir], numbers: range
) -> None:
    place, count = tmp_path / "Archive", len(numbers)
    box = kind(place)
    for number in numbers:
        box.add(written(number))
    box.close()
    before = shell.json("junk", "teach", str(place), "--wanted")
    assert set(before) == {"junk", "wanted", "waiting"}
    again = shell.json("junk", "teach", str(place), "--wanted")
    assert again["wanted"] == before["wanted"], "the same again is one example"
    assert before["wanted"] >= count
    turned = shell.json("junk", "teach", str(place), "--junk")
    assert (turned["junk"] - before["junk"], before["wanted"] - turned["wanted"]) == (count, count)
    assert "wanted" in shell.human("junk", "teach", str(place), "--wanted")
    if kind is mailbox.Maildir:  # a request has up to 1 MB
        for number in range(3):
            letter = written(1_000 + number).as_bytes() + b"x" * 760_000
            (place / "new" / f"large{number}").write_bytes(letter)
        turned = shell.json("junk", "teach", str(place), "--junk")
        assert turned["junk"] - before["junk"] >= count + 3
        assert shell.run("junk", "reset", "--yes").exit_code == 0
        assert shell.json("junk", "examples") == {"junk": 0, "wanted": 0, "waiting": 0}
    nothing = tmp_path / "empty"
    nothing.mkdir()
    refused = shell.run("junk", "teach", str(nothing), "--junk")
    assert (refused.exit_code, "holds no email" in refused.output) == (2, True)

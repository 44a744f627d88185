"""The numbers that callers are promised have one home, and texts that cannot take them from there agree."""

import re
from pathlib import Path

import pytest

from postroom import errors, limits
from tests.samples import samples

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "postroom"
TEXTS = {
    "an error": errors.PayloadTooLarge.__doc__ or "",
    "the guide for agents": (SOURCE / "web" / "llms.txt").read_text(),
    "the guide for people": (ROOT / "docs" / "api" / "drafts.md").read_text(),
}
IN_TOTAL = f"{limits.ATTACHMENTS_BYTES // limits.MEGABYTE} MB"
# Bounds of the fields of requests that no other place repeats may be plain numbers; these may not.
TAKEN = {limits.SUBJECT_CHARACTERS, limits.BODY_CHARACTERS, limits.HTML_CHARACTERS, limits.ADDRESS_CHARACTERS}
WRITTEN = re.compile(r'(?:max_length=|maxlength="|_CHARACTERS = )([0-9_]+)')

pytestmark = pytest.mark.sqlite_alone


@samples("where", sorted(TEXTS))
def test_texts_tell_the_size_of_attachments_as_it_is(where: str) -> None:
    told = set(re.findall(r"\b\d+ MB(?= in total| and \d+ files in total)", TEXTS[where]))
    assert told == {IN_TOTAL}


def test_every_limit_is_used_and_no_field_repeats_one() -> None:
    sources = {path: path.read_text() for kind in ("*.py", "*.html") for path in SOURCE.rglob(kind)}
    home = sources.pop(SOURCE / "limits.py")
    used = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", "\n".join(sources.values())))
    assert {name for name in re.findall(r"^[A-Z_]+", home, re.MULTILINE) if name not in used} == {
        "LINE_CHARACTERS",  # subject and headers are made of it
        "LESSONS_BYTES",  # clients send so much at once
    }
    repeated = {
        (str(path.relative_to(SOURCE)), number)
        for path, text in sources.items()
        for number in WRITTEN.findall(text)
        if int(number) in TAKEN
    }
    assert repeated == set()

"""The documentation site: what a build adds to the pages. `make docs` itself needs packages of its own."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import FloatRect

from tests.browser.tour import CAPTION, SCENES, SIZE, Shot, draw
from tools.site import build_hooks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAV = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")[2]
SECTIONS = [
    (title, re.findall(r"[\w/-]+\.md", names)) for title, names in re.findall(r"- ([\w ]+): \[(.+?)\]", NAV)
]


class PageFile:
    def __init__(self, name: str) -> None:
        self.src_uri = name


class WrittenPage:
    def __init__(self, name: str) -> None:
        self.file = PageFile(name)
        self.meta: dict[str, object] = {}


@pytest.fixture(scope="module", autouse=True)
def read() -> None:
    for name in ["index.md", *(name for _, names in SECTIONS for name in names)]:
        build_hooks.on_page_markdown((DOCS / name).read_text(), page=WrittenPage(name))


def test_the_index_for_agents_names_every_page_with_its_first_sentence() -> None:
    lines = build_hooks.index(SECTIONS).splitlines()
    assert lines[0] == "# Postroom"
    assert lines[2].startswith("> Postroom is ")
    entries = [re.fullmatch(r"- \[(.+)\]\((.+\.md)\): (.+\.)", line) for line in lines if line[:2] == "- "]
    assert [entry and entry[2] for entry in entries] == [name for _, names in SECTIONS for name in names]
    assert len(entries) > 50


def test_all_pages_are_in_one_file_but_those_to_look_things_up_in() -> None:
    text = build_hooks.everything(SECTIONS)
    for _, names in SECTIONS:
        for name in names:
            assert (f"<!-- {name} -->\n\n# " in text) == (name not in build_hooks.LOOKED_UP), name


def test_the_site_loads_nothing_from_elsewhere() -> None:
    theme = [path.read_text() for path in (ROOT / "tools/site/theme").rglob("*.*")]
    assert not [text for text in theme if re.search(r"https?://|@import", text)]
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert "polyfills: [assets/iframe-worker.js]" in settings  # else a plugin adds one from elsewhere


def test_a_tour_is_a_minute_of_pictures_with_their_sentences() -> None:
    target: FloatRect = {"x": 10, "y": 2000, "width": 4000, "height": 8}
    shots = [Shot("data:image/webp;base64,", scene.caption, target) for scene in SCENES]
    tree = ET.fromstring(draw([*shots[1:], Shot("data:,", "<b> & more", None)], "dark"))
    assert tree.get("viewBox") == f"0 0 {SIZE['width']} {SIZE['height'] + CAPTION}"
    scenes = [each for each in tree.iter() if each.get("class") == "scene"]
    assert [each.get("style") for each in scenes] == [f"animation-delay:{n * 5}s" for n in range(12)]
    assert "<b> & more" in "".join(scenes[-1].itertext())
    [*_, last] = [each.get("style") or "" for each in tree.iter() if each.get("class") == "pointer"]
    assert last.startswith("--x:150px;--y:690px;")

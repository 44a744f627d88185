"""What a build of the site adds: the look of the dashboard, `llms.txt`, and `llms-full.txt` with all pages.

mkdocs calls these functions by their names, in an environment that has nothing else of the project.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "postroom" / "web" / "dashboard" / "static"
SHARED = {"assets/tokens.css": "tokens.css", "assets/postmark.svg": "favicon.svg"}
TOUR = "images/tour-light.svg"
LOOKED_UP = ("reference.md", "decisions.md")  # too long to be read from top to bottom
SENTENCE = re.compile(r".+?\.(?=\s|$)")
LEADING_REMARK = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")

Sections = list[tuple[str, list[str]]]
_markdown: dict[str, str] = {}
_sections: Sections = []


def on_config(config: Any) -> Any:
    config.extra["tour"] = (Path(config.docs_dir) / TOUR).exists()
    return config


def on_files(files: Any, config: Any) -> Any:
    file = import_module("mkdocs.structure.files").File  # only where the site is built
    for name, source in SHARED.items():
        files.append(file.generated(config, name, content=(STATIC / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Without the remark of a generated page, which would stand before its title. Records are found last."""
    if page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"boost": 0.2}
    _markdown[page.file.src_uri] = LEADING_REMARK.sub("", markdown)
    return _markdown[page.file.src_uri]


def on_nav(nav: Any, **_: Any) -> Any:
    _sections.extend(
        (item.title, [page.file.src_uri for page in item.children]) for item in nav if item.children
    )
    return nav


def on_post_build(config: Any) -> None:
    site = Path(config.site_dir)
    for name, text in _markdown.items():
        (site / name).write_text(text)
    (site / "llms.txt").write_text(index(_sections))
    (site / "llms-full.txt").write_text(everything(_sections))


def index(sections: Sections) -> str:
    """Each page with its first sentence, in the form that llmstxt.org proposes."""
    lines = [
        "# Postroom",
        "",
        f"> {summary('index.md')}",
        "",
        "All pages in one file: [llms-full.txt](llms-full.txt)",
    ]
    for title, names in sections:
        lines += ["", f"## {title}", ""]
        lines += [f"- [{heading(name)}]({name}): {summary(name)}" for name in names]
    return "\n".join(lines) + "\n"


def everything(sections: Sections) -> str:
    names = ["index.md", *(name for _, names in sections for name in names if name not in LOOKED_UP)]
    head = (
        f"Every page of the documentation but {' and '.join(LOOKED_UP)}, which are for looking things up.\n"
    )
    return "\n\n".join([head, *(f"<!-- {name} -->\n\n{_markdown[name].strip()}" for name in names)]) + "\n"


def heading(name: str) -> str:
    found = re.search(r"^# (.+)$", _markdown[name], re.MULTILINE)
    return found[1] if found else name


def summary(name: str) -> str:
    """The first sentence below the title, without its links."""
    below = re.split(r"^# .+$", _markdown[name], maxsplit=1, flags=re.MULTILINE)[-1].strip()
    paragraph = LINK.sub(r"\1", below.split("\n\n", 1)[0].replace("\n", " "))
    found = SENTENCE.match(paragraph)
    return found[0] if found else f"{paragraph.rstrip(':')}."

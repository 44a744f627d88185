"""Markup is made by templates and by a few functions that are named here, and of nothing but constants."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes
from markupsafe import Markup

from postroom.web.dashboard.display.rendering import Renderer
from tests.samples import samples

SOURCE = Path(__file__).parent.parent / "src" / "postroom"
PAGES = SOURCE / "web" / "dashboard"
TEMPLATES = sorted(PAGES.rglob("*.html"))
# They take a value for markup, or make markup of it.
FORBIDDEN_FILTERS = {"safe", "tojson", "xmlattr", "urlize", "escape", "e", "forceescape", "indent", "string"}
FORBIDDEN_NODES = (nodes.MarkSafe, nodes.MarkSafeIfAutoescape, nodes.ScopedEvalContextModifier)
MAKERS_OF_MARKUP = {
    "web/dashboard/display/plots.py",
    "web/dashboard/display/rendering.py",
    "web/dashboard/display/signs.py",
}
# What answers with HTML; the second is a mail's own, in a sandbox, and the last a file of ours.
WRITERS_OF_HTML = {
    "web/dashboard/display/rendering.py",
    "web/dashboard/pages/message.py",
}
HTMX = re.compile(r"\bhx-(?:get|post|ws:connect)=")
BASE_URL = "http://127.0.0.1:8080"
COLUMNS = 120
# Elements in which a browser shows line breaks.
PREFORMATTED = re.compile(r"<(pre|textarea)\b[^>]*>(.*?)</\1>", re.DOTALL)


@functools.cache
def environment() -> jinja2.Environment:
    return Renderer(BASE_URL)._environment


def written(template: str, **values: object) -> str:
    return environment().from_string(template).render(**values)


def test_the_templates_are_found() -> None:
    assert len(TEMPLATES) >= 40
    assert environment().autoescape is True


@samples("path", TEMPLATES)
def test_a_template_takes_no_value_for_markup(path: Path) -> None:
    tree = environment().parse(path.read_text(), path.name)
    filters = {node.name for node in tree.find_all(nodes.Filter)}
    assert not filters & FORBIDDEN_FILTERS
    assert not list(tree.find_all(FORBIDDEN_NODES))


@samples("path", TEMPLATES)
def test_no_line_of_a_template_is_longer_than_an_editor_is_wide(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS] == []


def test_the_indentation_of_a_template_is_not_sent() -> None:
    template = '<ul\n    id="a">\n  {% for n in (1, 2) %}\n    <li>{{ n }}</li>\n  {% endfor %}\n</ul>'
    assert written(template) == '<ul\nid="a">\n<li>1</li>\n<li>2</li>\n</ul>'
    assert written("<p>\n  {{ 1 -}}\n  {% if true %}, 2{% endif +%}\n  3\n</p>") == "<p>\n1, 2\n3\n</p>"


def sent(path: Path) -> str:
    """The text of a template as Jinja writes it, with marks where its tags stand."""
    tokens = environment().lex(environment().preprocess(path.read_text()))
    return "".join(value if kind == "data" else "\0" for _, kind, value in tokens)


@samples("path", TEMPLATES)
def test_no_template_breaks_a_line_where_a_browser_shows_it(path: Path) -> None:
    shown = [inside for _, inside in PREFORMATTED.findall(sent(path))]
    assert not [inside for inside in shown if "\n" in inside]


@samples("path", TEMPLATES)
def test_every_attribute_of_htmx_has_the_nonce_beside_it(path: Path) -> None:
    text = path.read_text()
    assert len(HTMX.findall(text)) == text.count('hx-nonce="{{ nonce }}"')
    assert "hx-on" not in text
    assert "data-hx-" not in text


def test_the_pages_tell_htmx_to_obey_only_what_has_the_nonce() -> None:
    layout = (PAGES / "layout.html").read_text()
    assert '"prefix": "", "extensions": "nonce, ws", "nonce": "{{ nonce }}"' in layout
    script = Renderer(BASE_URL).assets["htmx.js"].content
    assert b'htmx.registerExtension("nonce"' in script


def calls_of_markup(path: Path) -> Iterator[ast.Call]:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "Markup" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name == "Markup":
                yield node


def test_markup_is_made_of_constants_in_a_few_places() -> None:
    makers = set()
    for path in [path for path in SOURCE.rglob("*.py") if "Markup" in path.read_text()]:
        for call in calls_of_markup(path):
            makers.add(str(path.relative_to(SOURCE)))
            [given] = call.args
            assert isinstance(given, ast.Constant), f"{path}:{call.lineno}: give values to .format"
    assert makers == MAKERS_OF_MARKUP
    words = ("markupsafe", "__html__")
    for path in SOURCE.rglob("*.py"):
        is_maker = str(path.relative_to(SOURCE)) in MAKERS_OF_MARKUP
        assert is_maker or not any(word in path.read_text() for word in words), path


def test_html_is_answered_in_a_few_places() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "web").rglob("*.py")
        if re.search(r"""(media_type=|, )"text/html"|HTMLResponse""", path.read_text())
    }
    assert found == WRITERS_OF_HTML


@samples(
    "template",
    [
        '<p title="{{ value }}">',
        "<p title='a {{ value }} b'>",
        '<p title="{% if value %}{{ value }}{% endif %}">',
        '<p{% if value %} title="{{ value }}"{% endif %}>',
        '<!-- " --><p\n class="a > b"\n title = "{{ value if value else 1 }}">',
        '<p>"</p><p title="{{ value|upper }}">',
        '{% macro code(text) %}<p title="{{ text }}"></p>{% endmacro %}{{ code(value) }}',
    ],
)
def test_in_an_attribute_even_markup_is_text(template: str) -> None:
    for value in (Markup("\"'><b x=1>"), "\"'><b x=1>"):
        shown = written(template, value=value).replace("a > b", "")
        assert "<b" not in shown.lower()
        assert "&#34;&#39;&gt;&lt;b x=1&gt;" in shown.lower()


def test_between_elements_markup_stays_and_text_is_escaped() -> None:
    assert written('<p title="a">{{ value }}</p>', value=Markup("<b>x</b>")) == '<p title="a"><b>x</b></p>'
    assert written('<p title="a">{{ value }}</p>', value="<b>") == '<p title="a">&lt;b&gt;</p>'


@samples(
    ("address", "is_own"),
    [
        ("/app/mail?x=1#y", True),
        (f"{BASE_URL}/v1/attachments/a/b?expires=1&signature=2", True),
        ("?x=1", True),
        ("#answer", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        (" javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//evil.example/x", False),
        ("/\\evil.example/x", False),
        ("/\t/evil.example", False),
        ("https://evil.example/", False),
        (f"{BASE_URL}.evil.example/", False),
        (f"{BASE_URL}@evil.example/", False),
        (f"{BASE_URL}//evil.example/", False),
        ("evil", False),
        ("", False),
    ],
)
def test_an_address_leads_to_this_server_or_nowhere(address: str, is_own: bool) -> None:
    for attribute in ("href", "src", "action", "formaction", "hx-get", "hx-post"):
        shown = written(f'<p {attribute}="{{{{ value }}}}">', value=address).replace("&amp;", "&")
        assert shown == f'<p {attribute}="{address if is_own else "#"}">'


@samples(
    "template",
    [
        "<p title={{ value }}>",
        "<p {{ value }}>",
        "<{{ value }}>",
        "<p {{ value }}='x'>",
        ' class="{{ value }}"',
        '<p onclick="{{ value }}">',
        '<p style="color: {{ value }}">',
        '<iframe srcdoc="{{ value }}">',
        '<p hx-on:click="{{ value }}">',
        '<p hx-vals="{{ value }}">',
        '<p data-hx-get="{{ value }}">',
        "<script>let x = '{{ value }}'</script>",
        "<style>p { color: {{ value }} }</style>",
    ],
)
def test_no_value_stands_where_a_browser_reads_more_than_text(template: str) -> None:
    with pytest.raises(jinja2.TemplateSyntaxError):
        environment().from_string(template)

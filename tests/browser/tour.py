"""A tour of one minute, made of pictures of the real pages: `make tour` writes them into docs/images.

An SVG shows the pictures one after the other, each with a sentence and a pointer: no script, and sharp text.
"""

import base64
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, FloatRect, Page, ViewportSize

from postroom.clock import SystemClock
from tests.browser.house import House, house
from tests.browser.made_up_mail import fill
from tests.browser.screenshots import FOLDER, chromium, pages, sign_in
from tests.doubles import FakeClock

SECONDS = 60
SIZE: ViewportSize = {"width": 1200, "height": 720}
CAPTION = 64  # pixels below the picture
QUALITY = 0.82
SHRINK = """async ([png, quality]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height});
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality);
}"""
COLOURS = {
    "light": {"paper": "#f7f2e7", "ink": "#20242e", "accent": "#33449b", "line": "#ddd3bd"},
    "dark": {"paper": "#131a2b", "ink": "#ebe7dc", "accent": "#a9b8ff", "line": "#34405d"},
}
# Of the time of a scene: the pointer arrives and presses, the picture goes.
MOMENTS = {"arrived": 0.4, "pressed": 0.5, "released": 0.7, "over": 1, "gone": 1.07}
STYLE = """
.scene { opacity: 0; animation: show %(seconds)ss infinite backwards }
.scene:first-of-type { opacity: 1 }
.pointer { animation: go %(seconds)ss infinite backwards cubic-bezier(.3, 0, .2, 1) }
.ring { transform-box: fill-box; transform-origin: center }
.ring { animation: press %(seconds)ss infinite backwards }
.bar { animation: grow %(seconds)ss linear infinite }
text { font: 600 24px system-ui, sans-serif; fill: %(ink)s }
@keyframes show {
  0%% { opacity: 0 }
  .6%%, %(over)s%% { opacity: 1 }
  %(gone)s%%, 100%% { opacity: 0 }
}
@keyframes go {
  0%% { transform: translate(%(x)spx, %(y)spx) }
  %(arrived)s%%, 100%% { transform: translate(var(--x), var(--y)) }
}
@keyframes press {
  0%%, %(arrived)s%% { transform: scale(.3); opacity: 0 }
  %(pressed)s%% { opacity: .9 }
  %(released)s%%, 100%% { transform: scale(1); opacity: 0 }
}
@keyframes grow { from { transform: scaleX(0) } }
@media (prefers-reduced-motion: reduce) {
  * { animation: none !important }
  .pointer, .bar { opacity: 0 }
}
"""
Scheme = Literal["light", "dark"]


@dataclass(frozen=True)
class Scene:
    """A page, what is done on it before the picture, and where the pointer goes."""

    page: str
    caption: str
    target: str
    act: Callable[[Page], object] | None = None


@dataclass(frozen=True)
class Shot:
    image: str  # a data: URL
    caption: str
    target: FloatRect | None


def create_inbox(page: Page) -> None:
    create = page.locator("#create_inbox")
    create.get_by_text("Try it", exact=True).click()
    create.get_by_label("Body").fill('{"mailboxName": "returns", "displayName": "Returns"}')
    create.get_by_role("button", name="Send POST").click()
    create.locator(".outcome pre").wait_for()
    create.locator(".try").evaluate("node => node.scrollIntoView({block: 'center'})")


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve and send").click()
    page.get_by_role("button", name="Undo").wait_for()


SCENES = (
    Scene(
        "/docs/inboxes", "One request gives an agent a real email address.", ".outcome .state", create_inbox
    ),
    Scene("mail", "Email arrives. You see every inbox of every agent.", ".threads li:nth-child(6)"),
    Scene("thread", "The agent reads new text only, and answers in the thread.", ".message .prose"),
    Scene("trick", "A stranger asks for money: the verdict says what is wrong.", ".verdict"),
    Scene("views", "See an email as the agent gets it, with tricks marked.", "mark, .two-views pre"),
    Scene("approvals", "What breaks a rule waits for you.", ".why, [data-key=a]"),
    Scene("approvals", "One click sends it. You can undo for ten seconds.", ".notice button", approve),
    Scene("agent", "Follow an agent: its calls, sends, drafts and holds.", ".timeline li, main table"),
    Scene("rules-of-inbox", "Write rules in words, and try them on past email.", "main .sheet, main form"),
    Scene("search", "Search finds words in text and in attached files.", "main mark"),
    Scene("contact", "Know who writes: history, authentication, verdicts.", "main .sheet"),
    Scene("audit", "The audit log keeps who did what, on your own server.", "main tbody tr, main .log"),
)


def shoot(browser: Browser, running: House, scheme: Scheme) -> Iterator[Shot]:
    context = browser.new_context(
        color_scheme=scheme, viewport=SIZE, timezone_id="Europe/Stockholm", locale="en-GB"
    )
    page, found = context.new_page(), pages(running)
    found["rules-of-inbox"] = f"/app/settings/rules?{found['inbox'].partition('?')[2]}"
    sign_in(page, running)
    for scene in SCENES:
        page.goto(running.base_url + found.get(scene.page, scene.page))
        page.wait_for_selector("body:is([data-live], .reference)")
        if scene.act:
            scene.act(page)
        target = page.locator(scene.target).first
        box = target.bounding_box() if target.count() else None
        png = base64.b64encode(page.screenshot()).decode()
        yield Shot(page.evaluate(SHRINK, [png, QUALITY]), scene.caption, box)
        if scene.act is approve:
            page.get_by_role("button", name="Do it now").click()
            page.wait_for_load_state()
    context.close()


def draw(shots: list[Shot], scheme: Scheme) -> str:
    """All scenes lie on each other; each is visible for its part of the minute."""
    colours, part = COLOURS[scheme], SECONDS / len(shots)
    width, height = SIZE["width"], SIZE["height"]
    style = STYLE % {
        "seconds": SECONDS,
        "ink": colours["ink"],
        "x": width / 2,
        "y": height,
        **{name: share * 100 / len(shots) for name, share in MOMENTS.items()},
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + CAPTION}" role="img">',
        "<title>A tour of Postroom in one minute</title>",
        f"<style>{style}</style>",
        f'<rect width="100%" height="100%" fill="{colours["paper"]}"/>',
    ]
    for number, shot in enumerate(shots):
        delay = f"animation-delay:{number * part:g}s"
        lines.append(
            f'<g class="scene" style="{delay}"><image width="{width}" height="{height}" href="{shot.image}"/>'
        )
        lines.append(f'<text x="28" y="{height + 41}">{escape(shot.caption)}</text>')
        if shot.target:
            lines.append(pointer(shot.target, delay, colours))
        lines.append("</g>")
    bar = f'y="{height + CAPTION - 4}" width="{width}" height="4" fill="{colours["accent"]}"'
    lines += [
        f'<rect y="{height}" width="{width}" height="1" fill="{colours["line"]}"/>',
        f'<rect class="bar" {bar}/>',
        "</svg>",
    ]
    return "\n".join(lines)


def pointer(target: FloatRect, delay: str, colours: dict[str, str]) -> str:
    """Near the beginning of what is wide, at most in the middle, and never below the picture."""
    x = target["x"] + min(target["width"] / 2, 140)
    y = min(target["y"] + min(target["height"] / 2, 60), SIZE["height"] - 30)
    arrow = f'd="M0 0v25l7-6 5 11 5-2-5-11h9z" fill="{colours["ink"]}" stroke="{colours["paper"]}"'
    ring = f'r="34" fill="none" stroke="{colours["accent"]}" stroke-width="4"'
    return (
        f'<g class="pointer" style="--x:{x:.0f}px;--y:{y:.0f}px;{delay}">'
        f'<circle class="ring" style="{delay}" {ring}/><path {arrow} stroke-width="2"/></g>'
    )


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):  # each has a server of its own, since scenes change what is there
        with (
            tempfile.TemporaryDirectory() as folder,
            house(Path(folder), FakeClock(SystemClock().now())) as running,
            chromium() as browser,
        ):
            fill(running)
            (FOLDER / f"tour-{scheme}.svg").write_text(draw(list(shoot(browser, running, scheme)), scheme))


if __name__ == "__main__":
    main()

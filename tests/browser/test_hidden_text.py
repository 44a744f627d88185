"""What a browser shows of the tricks by which mails hide words: its pixels, with words and with others."""

import contextlib

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from tests.mail.hiding_tricks import HARMLESS, OTHER_WORDS, TRICKS, WORDS, Trick

pytestmark = pytest.mark.needs("chromium")
WIDTH, HEIGHT, AT_ONCE = 640, 100, 75
# Each in a frame of its own without scripts. A frame costs twenty times what is written into it, so that all
# that are shown one after the other in a place are written into the same.
FRAMES = """([count, style]) => {
  document.head.innerHTML = `<style>${style}</style>`;
  for (let at = 0; at < count; at++) {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-same-origin";
    document.body.append(frame);
  }
}"""
WRITE = """async pages => {
  const written = pages.map((page, at) => frames[at].document);
  written.forEach((each, at) => {
    each.open();
    each.write(pages[at]);
    each.close();
  });
  const animations = written.flatMap(each => each.getAnimations());
  const short = animations.filter(each => each.effect.getComputedTiming().endTime < 100);
  await Promise.all(short.map(each => each.finished));
  await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
}"""
# In which of the frames two pictures differ by as much as an eye sees.
DIFFERENT = """async ([one, other, size, count, least]) => {
  const pixels = async source => {
    const picture = new Image();
    picture.src = "data:image/png;base64," + source;
    await picture.decode();
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const drawing = canvas.getContext("2d", {willReadFrequently: true});
    drawing.drawImage(picture, 0, 0);
    return drawing.getImageData(0, 0, picture.width, picture.height).data.buffer;
  };
  const [first, second] = [await pixels(one), await pixels(other)];
  const isSeen = at => {
    const [these, those] = [first, second].map(each => new Uint8Array(each, at * 4, 4));
    return these.some((value, channel) => Math.abs(value - those[channel]) >= least);
  };
  const [ours, theirs] = [new Uint32Array(first), new Uint32Array(second)];
  return [...Array(count).keys()].map(frame => {
    for (let at = frame * size; at < (frame + 1) * size; at++)
      if (ours[at] !== theirs[at] && isSeen(at)) return true;
    return false;
  });
}"""
LEAST_SEEN = 24


def open_frames(page: Page) -> None:
    size = f"width:{WIDTH}px;height:{HEIGHT}px"
    style = f"*{{margin:0}}iframe{{display:block;border:0;background:#fff;{size}}}"
    page.set_content("<!DOCTYPE html>")
    page.evaluate(FRAMES, [AT_ONCE, style])


def shot(page: Page, camera: CDPSession, tricks: list[Trick], words: str) -> str:
    """All of them in one picture."""
    page.evaluate(WRITE, [trick.html(words) for trick in tricks])
    taken: str = camera.send("Page.captureScreenshot", {"optimizeForSpeed": True})["data"]
    return taken


def seen(page: Page, camera: CDPSession, tricks: list[Trick]) -> list[bool]:
    pictures = [shot(page, camera, tricks, words) for words in (WORDS, OTHER_WORDS)]
    found: list[bool] = page.evaluate(DIFFERENT, [*pictures, WIDTH * HEIGHT, len(tricks), LEAST_SEEN])
    return found


@pytest.mark.share(3, turn=1)
def test_a_browser_shows_of_each_trick_what_the_table_says(browser: Browser) -> None:
    every = [*TRICKS, *HARMLESS]
    found: list[bool] = []
    with contextlib.closing(browser.new_page(viewport={"width": WIDTH, "height": HEIGHT * AT_ONCE})) as page:
        open_frames(page)
        camera = page.context.new_cdp_session(page)
        for start in range(0, len(every), AT_ONCE):
            found += seen(page, camera, every[start : start + AT_ONCE])
    wrong = [
        f"{trick.group}: {trick.name}: {'seen' if is_seen else 'not seen'}"
        for trick, is_seen in zip(every, found, strict=True)
        if is_seen != trick.is_seen
    ]
    assert not wrong, "\n".join(wrong)

"""What a browser shows of the tricks by which mails hide words: its pixels, with words and with others."""

import base64
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from tests.mail.hiding_tricks import HARMLESS, OTHER_WORDS, TRICKS, WORDS, Trick

pytestmark = pytest.mark.needs("chromium")
WIDTH, HEIGHT, AT_ONCE = 1024, 160, 60
# The greatest difference of two pictures in each of the frames, of 255.
DIFFERENCES = """async ([one, other, width, height, count]) => {
  const pixels = async source => {
    const picture = new Image();
    picture.src = "data:image/png;base64," + source;
    await picture.decode();
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const drawing = canvas.getContext("2d");
    drawing.drawImage(picture, 0, 0);
    return drawing.getImageData(0, 0, picture.width, picture.height).data;
  };
  const [first, second] = [await pixels(one), await pixels(other)];
  return [...Array(count).keys()].map(frame => {
    let most = 0;
    for (let at = frame * width * height * 4; at < (frame + 1) * width * height * 4; at++)
      most = Math.max(most, Math.abs(first[at] - second[at]));
    return most;
  });
}"""
LEAST_SEEN = 24


def shot(page: Page, tricks: list[Trick], words: str) -> str:
    """All of them in one picture, each in a frame of its own, without scripts."""
    frames = "".join(
        f'<iframe sandbox src="data:text/html,{quote(trick.html(words))}"></iframe>' for trick in tricks
    )
    size = f"width:{WIDTH}px;height:{HEIGHT}px"
    style = f"*{{margin:0}}iframe{{display:block;border:0;background:#fff;{size}}}"
    page.set_content(f"<!DOCTYPE html><style>{style}</style>{frames}", wait_until="load")
    return base64.b64encode(page.screenshot(full_page=True)).decode()


def seen(browser: Browser, tricks: list[Trick]) -> list[bool]:
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT * len(tricks)})
    try:
        pictures = [shot(page, tricks, words) for words in (WORDS, OTHER_WORDS)]
        differences = page.evaluate(DIFFERENCES, [*pictures, WIDTH, HEIGHT, len(tricks)])
        return [difference >= LEAST_SEEN for difference in differences]
    finally:
        page.close()


def test_a_browser_shows_of_each_trick_what_the_table_says(browser: Browser) -> None:
    every = [*TRICKS, *HARMLESS]
    found: list[bool] = []
    for start in range(0, len(every), AT_ONCE):
        found += seen(browser, every[start : start + AT_ONCE])
    wrong = [
        f"{trick.group}: {trick.name}: {'seen' if is_seen else 'not seen'}"
        for trick, is_seen in zip(every, found, strict=True)
        if is_seen != trick.is_seen
    ]
    assert not wrong, "\n".join(wrong)

"""Newsletters of made-up offers, as programs lay them out: tables, styles on every cell, tracked links."""

import random

WORDS = [
    "lamp",
    "desk",
    "chair",
    "summer",
    "garden",
    "linen",
    "oak",
    "paper",
    "tea",
    "morning",
    "window",
    "harbour",
    "early",
    "market",
    "cotton",
    "small",
    "warm",
    "light",
    "shelf",
    "bread",
    "river",
    "autumn",
    "letter",
    "basket",
    "copper",
    "glass",
    "quiet",
    "corner",
    "honey",
    "stone",
    "blanket",
    "hand",
    "new",
]
SHEET = """
body { margin: 0; padding: 0; -webkit-text-size-adjust: 100%; background-color: #f4f4f4 }
table, td { border-collapse: collapse; mso-table-lspace: 0pt }
img { border: 0; height: auto; line-height: 100%; outline: none }
a { color: #1155cc; text-decoration: none }
a:hover { text-decoration: underline }
.button a { color: #ffffff !important; background: #1155cc; padding: 12px 20px }
.offer td.price { color: #c0392b; font-size: 18px }
.footer, .footer a { color: #767676; font-size: 12px }
.preheader { display: none !important; max-height: 0; overflow: hidden; mso-hide: all }
#outlook a { padding: 0 }
.ExternalClass, .ExternalClass p { line-height: 100% }
@media only screen and (max-width: 600px) {
  .column { width: 100% !important; display: block !important }
  .wide-only { display: none !important }
  .button a { width: 100% }
}
@media (prefers-color-scheme: dark) { body { background: #111111 } .offer { color: #eeeeee !important } }
"""


def newsletter(links: int, size_bytes: int, has_sheet: bool, seed: int = 1) -> str:
    """About so large, with so many links; a sheet is part of the size."""
    rng = random.Random(seed)
    head = f'<style type="text/css">{SHEET}</style>' if has_sheet else ""
    preview = '<div class="preheader" style="display:none;font-size:1px">What is new this week</div>'
    frame = f'<!DOCTYPE html><html><head><title>News</title>{head}</head><body bgcolor="#f4f4f4">{preview}'
    rest = size_bytes - len(frame) - 200
    offers = [_offer(rng, number, rest // links) for number in range(links - 1)]
    footer = '<p class="footer">You get this mail since you asked for it. <a href="https://news.example/unsubscribe?u=81">Unsubscribe</a></p>'
    table = '<table role="presentation" width="600" cellpadding="0" cellspacing="0" align="center">'
    return f"{frame}{table}{''.join(offers)}</table>{footer}</body></html>"


def _offer(rng: random.Random, number: int, size: int) -> str:
    target = f"https://click.news.example/t/{rng.getrandbits(32):x}"
    title = " ".join(rng.choices(WORDS, k=2)).title()
    style = "padding:8px 16px;font-family:Arial,sans-serif;color:#333333"
    start = f'<tr class="offer"><td style="{style}"><a href="{target}">{title}</a><br>'
    end = f'</td><td class="price">{rng.randint(5, 90)} EUR</td></tr>\n'
    words = ""
    while len(start) + len(words) + len(end) < size:
        words += f"{rng.choice(WORDS)} "
    return f"{start}{words.strip()}{end}"

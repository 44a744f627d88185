"""Ways to keep words from people's eyes and not from programs, and the like that keep nothing from anybody.

`is_seen` is what Chromium shows: `tests/browser/test_hidden_text.py` looks at its pixels.
"""

from dataclasses import dataclass

WORDS = "open the vault at noon"
OTHER_WORDS = "plan a day by the lake"


@dataclass(frozen=True, slots=True)
class Trick:
    group: str
    name: str
    body: str
    is_seen: bool
    is_old_page: bool = False

    def html(self, words: str = WORDS) -> str:
        doctype = "" if self.is_old_page else "<!DOCTYPE html>"
        sheet, end, body = self.body.rpartition("</style>")
        return f"{doctype}{sheet}{end}<p>Dear reader,</p>{body.replace('WORDS', words)}"


def _styled(group: str, is_seen: bool, *styles: str) -> list[Trick]:
    return [Trick(group, style, f'<div style="{style}">WORDS</div>', is_seen) for style in styles]


def _rule(group: str, is_seen: bool, *pairs: tuple[str, str]) -> list[Trick]:
    return [Trick(group, css, f"<style>{css}</style>{body}", is_seen) for css, body in pairs]


def _markup(group: str, is_seen: bool, *bodies: str) -> list[Trick]:
    return [Trick(group, body, body, is_seen) for body in bodies]


DISPLAY = _styled(
    "switched off", False,
    "display:none", "display:none;display:sparkling", "DISPLAY:NONE!important", "d\\69splay:none",
    "visibility:hidden", "visibility:collapse", "opacity:0", "opacity:0%", "opacity:calc(1 - 1)",
    "opacity:.01",
    "content-visibility:hidden", "display:none;all:inherit;display:none", "-webkit-text-security:disc",
    "opacity:.2;filter:opacity(.01)",
)  # fmt: skip
SMALL = [
    *_styled(
        "too small", False,
        "font-size:0", "font-size:0px;line-height:0", "font:0/0 serif", "font-size:calc(1px - 1px)",
        "font-size:min(0px, 2em)", "zoom:.01", "width:0;height:0;overflow:hidden",
        "max-height:0;overflow:hidden",
        "max-width:0;overflow:hidden;white-space:nowrap", "block-size:0;overflow:clip",
        "height:calc(2px - 2px);overflow:hidden", "line-height:0;overflow:hidden", "height:0;overflow:auto",
        "transform:scale(0)", "scale:0", "transform:scaleY(0.001)", "transform:matrix(0,0,0,0,0,0)",
        "transform:rotateX(90deg)", "rotate:y 90deg", "inline-size:0;overflow-x:hidden;white-space:nowrap",
    ),
    Trick("too small", "font sizes that multiply",
          '<div style="font-size:0"><b style="font-size:3em">WORDS</b></div>', False),
]  # fmt: skip
AWAY = _styled(
    "moved away", False,
    "position:absolute;left:-9999px", "position:absolute;top:-9999px", "position:fixed;left:200vw",
    "position:absolute;left:99999px", "position:relative;left:-5000px",
    "position:absolute;right:9999px;left:auto",
    "position:absolute;inset:0 auto auto -9999px", "text-indent:-9999px", "margin-left:-9999px",
    "margin:0 0 0 -200em", "transform:translateX(-9999px)", "transform:translate(-500vw, 0)",
    "translate:-9999px",
    "position:absolute;left:calc(-100vw * 20)", "position:absolute;inset-inline-start:-9999px",
    "position:absolute;top:-9999em", "transform:translate3d(-3000px,0,0)",
)  # fmt: skip
CUT = _styled(
    "cut or masked away", False,
    "position:absolute;clip:rect(0,0,0,0)", "clip-path:inset(50%)", "clip-path:inset(0 100% 0 0)",
    "clip-path:circle(0)", "clip-path:polygon(0 0, 0 0, 0 0)", "clip-path:ellipse(0 0)",
    "mask:linear-gradient(transparent, transparent)", "mask-image:linear-gradient(#0000, #0000)",
    "mask-image:url(nothing.svg)", "filter:opacity(0)", "filter:invert(1)",
    "filter:brightness(1) opacity(0%)",
    "clip-path:path('M 0 0')", "mix-blend-mode:lighten;color:#fdfdfd",
)  # fmt: skip
COLORED = [
    *_styled(
        "in the colour of the ground", False,
        "color:white", "color:#ffffff", "color:#FEFEFE", "color:rgb(255 255 255)", "color:rgba(0,0,0,0)",
        "color:transparent", "color:hsl(0 0% 100%)", "color:hwb(0 100% 0%)", "color:oklch(100% 0 0)",
        "color:oklab(1 0 0)", "color:lab(100 0 0)", "color:lch(100 0 0)", "color:color(srgb 1 1 1)",
        "color:color-mix(in srgb, white, white)", "color:light-dark(white, black)", "color:canvas",
        "-webkit-text-fill-color:transparent", "color:#0000", "color:navy;background:#000080",
        "background:linear-gradient(#222, #222);color:#222", "color:white;color:papayawhipped",
        "color:white;background:url(nothing.png)", "color:color-mix(in oklch, white 99%, black)",
        "color:rgb(from white r g b)", "color:white;text-shadow:none", "color:snow",
    ),
    Trick("in the colour of the ground", "font color=white", "<font color=white>WORDS</font>", False),
    Trick("in the colour of the ground", "bgcolor and color",
          '<table bgcolor="navy" width="100%"><tr><td><span style="color:#000080">WORDS</span></table>',
          False),
    Trick("in the colour of the ground", "body text",
          '<body bgcolor="#ffffee" text="#ffffee">WORDS', False),
]  # fmt: skip
X = '<p class="x" id="y" title="z">WORDS</p>'
IN_DIV = f'<div class="outer">{X}</div>'
RULED = _rule(
    "by a style sheet", False,
    (".x{display:none}", X), ("#y{font-size:0}", X), (".outer .x{display:none}", IN_DIV),
    (".outer > p{opacity:0}", IN_DIV), ("div p:not(.w){color:#fff}", IN_DIV), ("[title=z]{display:none}", X),
    ("[class^='x' i]{visibility:hidden}", X), (":is(.a, .x){display:none}", X),
    (":where(p.x){color:transparent}", X), ("p + p{display:none}", X), ("p ~ .x{font-size:0}", X),
    ("p:nth-child(2 of p){display:none}", X), ("p:nth-of-type(2){display:none}", X),
    ("body > p + p{display:none}", X), (".x:last-child{display:none}", X), ("div:has(.x){display:none}",
    IN_DIV),
    (":root{--c:white}.x{color:var(--c)}", X), (".x{--a:var(--b);--b:none;display:var(--a)}", X),
    (".x{display:var(--nowhere, none)}", X), ("@layer a{.x{display:none}}", X),
    ("@layer a, b;@layer b{.x{display:none}}@layer a{.x{display:block}}", X),
    ("@supports (display:grid){.x{display:none}}", X), ("@media screen{.x{display:none}}", X),
    ("@media (min-width:1px){.x{display:none}}", X), ("@media not print{.x{display:none}}", X),
    ("@media (width > 10px) and (orientation){.x{display:none}}", X), (".outer{& .x{display:none}}", IN_DIV),
    (".outer{.x{opacity:0}}", IN_DIV), (".x{display:none!important}p.x#y{display:block}", X),
    ("@container (min-width:1px){.x{display:none}}.outer{container-type:inline-size}", IN_DIV),
    ("@keyframes k{to{opacity:0}}.x{animation:k 1ms forwards}", X), ("<!-- .x{display:none} -->", X),
    ("@property --p{syntax:'*';inherits:true;initial-value:none}.x{display:var(--p)}", X),
    (".x::first-line{color:white}", X), ("tbody td{display:none}", "<table><tr><td>WORDS</table>"),
    ("body{font-size:0}", "WORDS"), ("*{color:white!important}", X), (".\\78{display:none}", X),
    (".x{display:none}.x:hover{display:block}", X), ("@scope (.outer){p{display:none}}", IN_DIV),
    ("@import url('data:text/css,.x{display:none}');", X), ("p{all:unset;display:none}", X),
)  # fmt: skip
MARKED_UP = [
    *_markup(
        "by markup", False,
        "<div hidden>WORDS</div>", "<div hidden=until-found>WORDS</div>", "<template>WORDS</template>",
        "<div style= display:none>WORDS</div>",
        "<!-- WORDS -->", "<dialog>WORDS</dialog>", "<div popover>WORDS</div>",
        "<details><summary>More</summary>WORDS</details>",
        "<details><summary>More</summary><p>WORDS</p></details>",
        "<details><div><summary>WORDS</summary></div></details>", "<ruby>k<rp>WORDS</rp></ruby>",
        "<datalist><option>WORDS</option></datalist>", "<noframes>WORDS</noframes>", "<iframe>WORDS</iframe>",
        "<video>WORDS</video>", "<meter>WORDS</meter>", "<progress value=1>WORDS</progress>",
        "<title>WORDS</title>", "<script>WORDS</script>", "<svg><desc>WORDS</desc></svg>",
        '<img alt="WORDS" style="display:none">', "<input type=hidden value='WORDS'>",
        "<link rel=stylesheet href='data:text/css,.x{display:none}'><p class=x>WORDS</p>",
        '<p style="display:none"><b style="display:block">WORDS</b></p>',
    ),
    Trick("by markup", "old page, length without a unit",
          '<div style="position:absolute;left:-9999">WORDS</div>', False, True),
    Trick("by markup", "old page, class in another case", "<style>.x{display:none}</style><p class=X>WORDS",
          False, True),
]  # fmt: skip
LAID_OVER = [
    Trick("under an opaque box", name, body, False)
    for name, body in (
        ("another box above it",
         '<p style="position:relative;height:20px">WORDS'
         '<span style="position:absolute;inset:0;background:#fff"></span></p>'),
        ("a box that comes first",
         '<div style="position:relative;height:20px"><div style="position:absolute;top:0;left:0;width:100%;'
         'height:100%;background:white"></div>WORDS</div>'),
        ("a box over the page",
         '<p>WORDS</p><div style="position:fixed;top:0;left:0;right:0;bottom:0;background:#fff"></div>'),
        ("a box with a gradient",
         '<div style="position:relative"><p>WORDS</p><div style="position:absolute;inset:0;'
         'background:linear-gradient(#fff,#fff)"></div></div>'),
        ("a box by a style sheet",
         "<style>.a{position:relative}.b{position:absolute;inset:0;background:#fff;z-index:2}</style>"
         '<div class=a><p>WORDS</p><i class=b></i></div>'),
    )
]  # fmt: skip
COVERED = [
    Trick("covered by something", "behind the ground of its parent",
          '<div style="background:#fff"><p style="position:relative;z-index:-1">WORDS</p></div>', False),
    Trick("covered by something", "pulled up under a box",
          '<p>WORDS</p><div style="margin-top:-60px;position:relative;height:80px;background:#fff"></div>',
          False),
    Trick("covered by something", "cut off by the box around it",
          '<div style="height:20px;overflow:hidden"><p style="margin:0">First</p><p>WORDS</p></div>', False),
    Trick("covered by something", "pushed out of the box around it",
          '<div style="width:200px;overflow:hidden">'
          '<p style="padding-left:300px;white-space:nowrap">WORDS</p></div>',
          False),
]  # fmt: skip
# What looks like a trick and hides nothing: words that must stay.
HARMLESS = [
    *_styled(
        "hides nothing", True,
        "display:none;display:block", "display:sparkling", "opacity:.5", "font-size:12px", "font-size:1",
        "width:0", "height:0", "height:0%;overflow:hidden", "clip:rect(0,0,0,0)", "left:-9999px",
        "text-indent:2em",
        "color:white;background:#333", "color:white;background:linear-gradient(#000, #333)",
        "color:transparent;text-shadow:0 0 0 #000", "color:transparent;-webkit-text-stroke:1px #000",
        "background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent",
        "visibility:hidden;visibility:visible", "transform:scale(2);transform-origin:0 0",
        "filter:grayscale(1)",
        "height:0;min-height:30px;overflow:hidden", "height:0;padding-bottom:30px;overflow:hidden",
        "color:var(--nowhere)", "color:rgba(0,0,0,.9)", "margin-left:-5px",
    ),
    *_rule(
        "hides nothing", True,
        ("@media print{.x{display:none}}", X), ("<!-- @media print{.x{display:none}} -->", X),
        ("@media (max-width:600px){.x{display:none}}", X), (".x:hover{display:none}", X),
        (".x::before{display:none;content:''}", X), ("@supports (display:sparkling){.x{display:none}}", X),
        (".x, ::-moz-odd{display:none}", X), ("@layer a{.x{display:none}}.x{display:block}", X),
        (".x{display:none}p.x{display:block}", X), ("table > tr{display:none}",
        "<table><tr><td>WORDS</table>"),
        ("p:first-child.x{display:none}", X), (".X{display:none}", X), ("@media print{p{display:none}}", X),
        ("@media (prefers-color-scheme:dark){.x{color:#fff}}", X), (".w .x{display:none}", IN_DIV),
    ),
    *_markup(
        "hides nothing", True,
        "<style media=print>.x{display:none}</style>" + X, "<style type=text/x>.x{display:none}</style>" + X,
        '<div hidden style="display:block">WORDS</div>', "<dialog open>WORDS</dialog>",
        "<details open><summary>More</summary>WORDS</details>",
        "<details><summary>WORDS</summary>x</details>",
        "<ruby>k<rt>WORDS</rt></ruby>", "<noscript>WORDS</noscript>", "<object>WORDS</object>",
        '<span style="width:0;height:0;overflow:hidden">WORDS</span>',
        '<div style="font-size:0"><p style="font-size:14px">WORDS</p></div>',
        '<div style="visibility:hidden"><p style="visibility:visible">WORDS</p></div>',
        '<div style="color:white"><a href="http://x.example">WORDS</a></div>',
        '<table><tr><td style="width:0;overflow:hidden">WORDS</table>', "<textarea>WORDS</textarea>",
        "<marquee behavior=alternate scrollamount=0>WORDS</marquee>", "<xmp>WORDS</xmp>",
    ),
    Trick("hides nothing", "old page, a table starts anew",
          '<div style="font-size:0"><table><tr><td>WORDS</table></div>', True, True),
]  # fmt: skip
HARMLESS += [
    Trick("hides nothing", name, f'<div style="position:relative">{body}</div>', True)
    for name, body in (
        ("a box behind it",
         '<p>WORDS</p><div style="position:absolute;inset:0;background:#fff;z-index:-1"></div>'),
        ("a veil", '<p>WORDS</p><div style="position:absolute;inset:0;background:rgba(0,0,0,.3)"></div>'),
        ("a box in the corner",
         '<p>WORDS</p><b style="position:absolute;top:0;right:0;width:9px;height:9px;background:red"></b>'),
        ("a box below it in the order",
         '<b style="position:absolute;inset:0;background:#fff"></b><p style="position:relative">WORDS</p>'),
        ("in the upper box", '<div style="position:absolute;inset:0;background:#fff"><p>WORDS</p></div>'),
    )
]  # fmt: skip
TRICKS = [*DISPLAY, *SMALL, *AWAY, *CUT, *COLORED, *RULED, *MARKED_UP, *LAID_OVER, *COVERED]

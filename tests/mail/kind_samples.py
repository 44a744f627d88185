"""The mails below samples/kinds, as they come: no field of their header gives them away."""

import html

from msgspec import Struct

from tests.mail.soundness import SAMPLES

_PERSON = '<html><body class="gmail_default"><div>{}</div></body></html>'
_TEMPLATE = (
    '<html><body><table width="100%"><tr><td><table width="600"><tr><td><table><tr><td>{}</td></tr></table>'
    '</td></tr></table></td></tr></table><img src="https://click.example/o.gif" width="1" height="1">'
    "</body></html>"
)


class KindSample(Struct, frozen=True):
    kind: str
    category: str
    form: str
    sender: str
    subject: str
    body: str
    is_held_out: bool

    def raw(self) -> bytes:
        head = f"From: {self.sender}\nTo: bob@here.example\nSubject: {self.subject}\n"
        if self.form == "text":
            return f"{head}Content-Type: text/plain; charset=utf-8\n\n{self.body}\n".encode()
        frame = _PERSON if self.form == "html" else _TEMPLATE
        page = frame.format(_paragraphs(self.body, is_linked=self.form == "bulk"))
        return f"{head}Content-Type: text/html; charset=utf-8\n\n{page}\n".encode()


def _paragraphs(body: str, *, is_linked: bool) -> str:
    """In a template the last words are a link, as the one that ends a subscription."""
    *rest, last = [f"{html.escape(line)}" for line in body.split("\n") if line]
    if is_linked:
        last = f'<a href="https://click.example/e/7f3a">{last}</a>'
    return "".join(f"<p>{line}</p>" for line in (*rest, last))


def read_all() -> list[KindSample]:
    found: list[KindSample] = []
    kind = category = ""
    for line in (SAMPLES / "kinds" / "mails.txt").read_text("utf-8").splitlines():
        if line.startswith("== "):
            _, kind, category = line.split()
        elif line and not line.startswith("#"):
            form, sender, subject, body = line.split(" | ", 3)
            text = body.replace("\\n", "\n")
            found.append(KindSample(kind, category, form, sender, subject, text, len(found) % 2 == 1))
    return found

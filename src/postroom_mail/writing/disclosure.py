"""The line at the end of an email that a machine wrote, in the language of the people it goes to."""

import re
from collections import Counter
from functools import cache
from html import escape

from postroom_mail.html.page import read_page
from postroom_mail.html.text import visible
from postroom_mail.languages.read import word_pairs

HEADER = "AI-Disclosure"
MODE = "mode=ai-originated"
MOST_CHARACTERS = 5_000  # of a text whose language is guessed
MOST_COMPARED = 20_000  # words of a text that was edited
KEPT_SHARE = 0.5  # of its words; with fewer, a person wrote the email
_WORD = re.compile(r"[^\W\d_]+")
# Words that are frequent in one language and rare in its neighbours; others are told by their letters.
_FREQUENT = {
    "en": "the and you for with this that have are your please thanks would from not",
    "de": "der die und ich nicht sie wir ist mit für bitte das haben eine danke auf",
    "fr": "le les vous nous est pour pas avec une dans merci votre je sur des bonjour",
    "es": "el los para una con por gracias que está usted como pero muy del las hola",
    "it": "il per non sono una grazie con che della questo gli anche nel buongiorno di è",
    "pt": "não uma para com obrigado os por você em mais está como mas do da olá",
    "nl": "het een van niet ik voor met dat is graag bedankt zijn wij je ook deze",
    "sv": "och att det är inte jag för med som på ett tack hej har vi kan",
    "da": "og at det er ikke jeg til med som på af en tak hej har vi kan fra",
    "no": "og det er ikke jeg til med som på av en takk hei har vi kan fra dere",
    "fi": "ja on ei että se hän kiitos olen tämä mutta kun voi sen ovat hei",
    "pl": "nie się jest na do że w z proszę dziękuję jak czy dla oraz dzień",
    "cs": "je se na že to prosím děkuji jsem pro ale jak nebo dobrý den s",
    "hu": "és hogy nem az egy kérem köszönöm van meg is ez de üdvözlettel kedves",
    "ro": "și nu este pentru cu în vă mulțumesc mai dar sunt din care bună ziua",
    "tr": "ve bir bu için değil teşekkürler ile çok merhaba lütfen olarak var ben",
}
_LETTERS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("uk", re.compile(r"[іїєґ]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
)
FEWEST_LETTERS, FEWEST_WORDS = 4, 2


@cache
def languages() -> dict[str, tuple[str, str]]:
    """Return the two sentences of each language, by its code."""
    lines = word_pairs("postroom_mail.writing", "disclosure_words.txt")
    pairs = ((code, line.partition(" | ")) for code, line in lines.items())
    return {code: (said, reviewed) for code, (said, _, reviewed) in pairs}


def guess_language(text: str) -> str:
    """Return the code of the language of a text; English if nothing speaks for another."""
    text = text[:MOST_CHARACTERS].lower()
    for code, letters in _LETTERS:
        if len(letters.findall(text)) >= FEWEST_LETTERS:
            return code
    words = Counter(_WORD.findall(text))
    counts = {code: sum(words[word] for word in known.split()) for code, known in _FREQUENT.items()}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= FEWEST_WORDS else "en"


def line_for(own_words: str | None, language: str, reviewer: str) -> str:
    """Return the line in the account's words, or ready ones; with who reviewed it, if somebody did."""
    said, reviewed = languages().get(language) or languages()["en"]
    end = f" {reviewed.format(name=reviewer)}" if reviewer else ""
    return f"{own_words or said}{end}"


def added_to_text(text: str, line: str) -> str:
    return f"{text.rstrip()}\n\n{line}\n" if text.strip() else f"{line}\n"


def added_to_html(html: str, line: str) -> str:
    """Add the line inside of the body, if it ends there."""
    at = html.lower().rfind("</body")
    at = len(html) if at < 0 else at
    return f"{html[:at]}<p>{escape(line)}</p>{html[at:]}"


def is_seen_in(html: str, line: str) -> bool:
    """Return whether a reader of the HTML sees the line, and not the marks around it."""
    seen, wanted = (" ".join(visible(text).split()) for text in (read_page(html).text, line))
    return wanted in seen and f"<p>{wanted}" not in seen


def header_value(reviewer: str) -> str:
    """Return the value of the header field, with who reviewed it in the letters that it may have."""
    name = "".join(letter for letter in reviewer if letter.isprintable() and letter not in '"\\')
    return f'{MODE}, reviewed-by="{name}"' if name else MODE


def is_mostly_kept(written: str, sent: str) -> bool:
    """Return whether at least half of the words that are sent are those that the agent wrote."""
    ours = Counter(_WORD.findall(written.lower())[:MOST_COMPARED])
    theirs = Counter(_WORD.findall(sent.lower())[:MOST_COMPARED])
    return (ours & theirs).total() >= KEPT_SHARE * max(theirs.total(), 1)

"""What agents look for in a mail: one-time codes, and the addresses of links."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from string import digits
from urllib.parse import urlsplit

from postroom.mail.markup import Open, tokens
from postroom.mail.phrases import one_of

MAX_SEARCHED_CHARS = 100_000
MAX_CODES = 20
MAX_LINKS = 100
MAX_LINK_CHARS = 2_000
# A code stands near the word that names it: further behind the word than before it.
REACH_AFTER_WORD = 120
REACH_BEFORE_WORD = 60

# The longest candidate and what may follow it, and the longest word, each with room to spare.
_CANDIDATE_REACH = 24
_LONGEST_WORD = 30

_WORDS = (
    *("code", "codes", "kode", "kod", "kodu", "koden", "kód", "koodi", "codice", "codigo", "código", "codi"),
    *("pin", "otp", "tan", "2fa", "mfa", "passcode", "one-time", "password", "passwort", "einmalpasswort"),
    *("mot de passe", "contraseña", "clave", "wachtwoord", "hasło", "heslo", "şifre", "şifreniz", "kodunuz"),
    *("verification", "verify", "vérification", "verifizierung", "bestätigung", "verificacion"),
    *("verificación", "verificacao", "verificação", "verificaçao", "verificacão"),
    *("код", "кода", "пароль", "κωδικός", "mã"),
)
# Words of languages that write without spaces, or join endings to them.
_JOINED_WORDS = (
    *("验证码", "驗證碼", "校验码", "動態密碼", "認証コード", "確認コード", "コード", "暗証番号"),
    *("인증번호", "인증코드", "인증 코드", "코드", "رمز", "קוד", "รหัส"),
)


# For text in lower case: ignoring case would try every word at every letter.
_WORD = re.compile(one_of(_WORDS, r"(?!\w)") + "|" + one_of(_JOINED_WORDS, ""))
# Words in front of "code" that make it something else.
_OTHER_CODE = re.compile(
    r"(?:zip|post|postal|area|country|promo|promotion|discount|coupon|voucher|gutschein|rabatt|error|fehler|status"
    r"|source|quell|qr|bar|dress|product|article|tax|bank|sort|swift|exit|response|color|colour|hex|vat|morse|vs)"
    r"[\s_-]{0,2}$",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(
    r"(?<![\w.,:/+=#&@%$€£¥-])(?<!\d[ -])(?:"
    r"\d{3}[ -]\d{3}|\d{4}[ -]\d{4}|\d{2}[ -]\d{2}[ -]\d{2}|\d{4,8}|[A-Z]-\d{4,8}"
    r"|[A-Z0-9]{3,5}-[A-Z0-9]{3,5}|(?=[A-Z]{0,8}\d)(?=\d{0,8}[A-Z])[A-Z0-9]{4,8}"
    r")(?![\w%€$£¥@]|[.,:/-]\d|-\w|[ -]\d{2,}|\s?(?:€|\$|£|(?i:eur|usd|gbp|chf)\b))"
)
_DIGITS = re.compile(r"\d(?:\D{0,24}\d)*+")
_OTHER_NUMBER = re.compile(
    r"(?<!\w)(?:order|invoice|ticket|case|account|customer|reference|ref|bestellung|bestellnummer|rechnung"
    r"|kundennummer|auftrag|commande|facture|pedido|factura|ordine|fattura|tel|telephone|phone|fax|mobile|call"
    r"|telefon|no|nr|number|total|amount|room|flight|size|version|port|line|ending in|ending|since|copyright"
    r"|year|in|of|©|\(c\))[\s.:#№-]{0,3}$",
    re.IGNORECASE,
)
_NAMED_AT_ONCE = re.compile(r"(?:\bis|ist|est|es|è|é|:|\uff1a|是|は|=)[\s*\"'“»]{0,4}$", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_URL = re.compile(r"[hH][tT]{2}[pP][sS]?://[^\s<>\"\x00-\x20\x7f\\^`{|}]+")
_IGNORED_IN_URL = re.compile(r"[\t\r\n]")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f-\xa0\ud800-\udfff]")


def codes(text: str) -> tuple[str, ...]:
    """One-time codes, as they are written, in order and without repeats."""
    text = text[:MAX_SEARCHED_CHARS]
    candidates = _candidates(text)
    if not candidates:
        return ()
    starts = [candidate.start() for candidate in candidates]
    words = _words_around(text, candidates)
    claimed = {place for word in words if (place := _nearest(word, candidates, starts)) is not None}
    return _first_unique((candidates[place].group() for place in sorted(claimed)), MAX_CODES)


def _candidates(text: str) -> list[re.Match[str]]:
    """Looks only around digits, of which most text has few and each candidate one."""
    if text.isascii() and not any(digit in text for digit in digits):
        return []
    around = ((run.start(), run.end()) for run in _DIGITS.finditer(text))
    return [
        candidate
        for start, end in _merged(around, _CANDIDATE_REACH, _CANDIDATE_REACH)
        for candidate in _CANDIDATE.finditer(text, start, end)
        if _is_candidate(text, candidate)
    ]


def _words_around(text: str, candidates: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    lowered = text.replace("\u0130", "I").lower()  # the one letter that would grow
    around = ((candidate.start(), candidate.end()) for candidate in candidates)
    return [
        word
        for start, end in _merged(around, REACH_AFTER_WORD + _LONGEST_WORD, REACH_BEFORE_WORD + _LONGEST_WORD)
        for word in _WORD.finditer(lowered, start, end)
        if not _is_other_code(text, word.start())
    ]


def _merged(spans: Iterable[tuple[int, int]], before: int, after: int) -> list[tuple[int, int]]:
    """The spans, in order, widened on both sides; those that then touch are one."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        start, end = max(0, start - before), end + after
        if merged and start <= merged[-1][1]:
            start = merged.pop()[0]
        merged.append((start, end))
    return merged


def _is_other_code(text: str, word_start: int) -> bool:
    return _OTHER_CODE.search(text[max(0, word_start - 12) : word_start]) is not None


def _is_candidate(text: str, candidate: re.Match[str]) -> bool:
    written, before = candidate.group(), text[max(0, candidate.start() - 20) : candidate.start()]
    if not _has_code_letters(written) or _OTHER_NUMBER.search(before):
        return False
    return not _YEAR.fullmatch(written) or _NAMED_AT_ONCE.search(before) is not None


def _has_code_letters(written: str) -> bool:
    """Capitals only, and a digit somewhere: `one-time` and `abc1` are words."""
    return written == written.upper() and any(letter.isdigit() for letter in written)


def _nearest(word: re.Match[str], candidates: list[re.Match[str]], starts: list[int]) -> int | None:
    """The candidate a word speaks of: the closest one within reach, on either side."""
    following = bisect_left(starts, word.end())
    reachable: list[tuple[int, int]] = []
    if following < len(candidates) and starts[following] - word.end() <= REACH_AFTER_WORD:
        reachable.append((starts[following] - word.end(), following))
    if following > 0 and (distance := word.start() - candidates[following - 1].end()) <= REACH_BEFORE_WORD:
        reachable.append((distance, following - 1))
    return min(reachable)[1] if reachable else None


def links(text: str, html: str) -> tuple[str, ...]:
    """Web addresses that the mail links to, first those of the HTML, in order and without repeats."""
    if not html and "://" not in text:
        return ()
    written = (match.group() for match in _URL.finditer(text))
    return _first_unique(_clean_links([*_targets(html), *map(_without_punctuation, written)]), MAX_LINKS)


def _targets(html: str) -> Iterator[str]:
    for piece in tokens(html):
        if isinstance(piece, Open) and piece.name in ("a", "area") and "href" in piece.attributes:
            yield piece.attributes["href"]


def _without_punctuation(url: str) -> str:
    """A link in running text without the stop, or the bracket, of its sentence."""
    url = url[: MAX_LINK_CHARS + 1].rstrip(".,;:!?'*_~…")
    if url.endswith(")") and url.count("(") < url.count(")"):
        return url[:-1].rstrip(".,;:!?'")
    return url[:-1] if url.endswith("]") and "[" not in url else url


def _clean_links(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        url = _IGNORED_IN_URL.sub("", url).strip()
        if len(url) <= MAX_LINK_CHARS and _is_web_address(url):
            yield url


def _is_web_address(url: str) -> bool:
    if not url[:8].lower().startswith(("http://", "https://")) or _NOT_IN_URL.search(url):
        return False
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _first_unique(values: Iterable[str], limit: int) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for value in values:
        seen.setdefault(value)
        if len(seen) >= limit:
            break
    return tuple(seen)

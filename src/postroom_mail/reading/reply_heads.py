"""What mail clients write, in many languages, above quoted or forwarded email and below a reply."""

from postroom_mail.languages.read import word_lists

_LISTS = word_lists("postroom_mail.reading", "reply_heads.txt")

HEAD_STARTS = (
    *(f"{word} " for word in _LISTS["first words"]),
    *(f"{day}," for day in _LISTS["days"]),
    "-----",
    "在",
    "于",
    "em\u00a0",
    "le\u00a0",
)
WROTE = _LISTS["wrote"]
WROTE_BEFORE_NAME = tuple(f" {word} " for word in _LISTS["wrote before name"])
# The verb of a head that may be on one line with the words above it.
WROTE_ON_THE_LINE = (
    " wrote:",
    " schrieb ",
    " a écrit",
    " escribió:",
    " escreveu:",
    " ha scritto:",
    " schreef ",
    " skrev ",
    " napisał",
    " kirjoitti:",
    " napsal",
)
# What a field of a copied head holds, by its name.
FIELDS = {word: field for field in ("subject", "to", "date", "sent", "from") for word in _LISTS[field]}
ORIGINAL_WORDS = _LISTS["original"]
FORWARD_WORDS = _LISTS["forward"]
FORWARD_HEADS = frozenset(_LISTS["forward heads"])
FORWARD_SUBJECTS = tuple(
    prefix + colon for prefix in _LISTS["forward subjects"] for colon in (":", " :", "\uff1a")
)
DEVICE_LINES = _LISTS["device lines"]
LIST_WORDS = _LISTS["list"]
LIST_LINES = _LISTS["list lines"]

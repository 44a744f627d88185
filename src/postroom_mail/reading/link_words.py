"""Words on and around links that verify an address, sign someone in, or end a subscription."""

from postroom_mail.languages.read import word_lists

_LISTS = word_lists("postroom_mail.reading", "link_words.txt")

VERIFYING = _LISTS["verifying"]
SIGNING_IN = _LISTS["signing in"]
UNSUBSCRIBING = _LISTS["unsubscribing"]
LABELS_TO_VERIFY = frozenset(_LISTS["labels to verify"])
ADDRESS_OR_ACCOUNT = _LISTS["address or account"]
URLS_TO_VERIFY = frozenset(_LISTS["urls to verify"])
URLS_TO_SIGN_IN = frozenset(_LISTS["urls to sign in"])
URLS_TO_UNSUBSCRIBE = frozenset(_LISTS["urls to unsubscribe"])
URLS_OF_OTHER_MATTERS = frozenset(_LISTS["urls of other matters"])
POINTING = _LISTS["pointing"]
POINTING_JOINED = _LISTS["pointing, joined"]

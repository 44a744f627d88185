"""Well-known companies whose names fraud borrows, and what their own domains contain."""

import re
from itertools import pairwise

from postroom_mail.languages.folding import TO_LATIN, plain_letters

MAX_WORDS = 12
_OWN_NAMES = (
    "adobe aliexpress allegro amazon barclays binance bitpanda bradesco caixa carrefour citibank coinbase"
    " colissimo commerzbank correios costco decathlon deutschebank dhl disney docusign dropbox ebay edeka"
    " facebook fedex fressnapf hermes hsbc icloud impots inpost instagram itau kraken laposte lastpass ledger"
    " lidl linkedin lloyds mastercard mcafee mercadolivre mercadopago metamask microsoft natwest netflix"
    " nordvpn onedrive opensea outlook paypal postbank postfinance postnl rabobank rakuten revolut rossmann"
    " royalmail samsung santander sberbank sharepoint shein shopify sparkasse spotify starbucks stripe"
    " swisscom temu ticketmaster tiktok trezor trustwallet usps vodafone volksbank walmart wellsfargo"
    " wetransfer whatsapp zalando allianz americanexpress bankofamerica bnpparibas creditagricole google"
)
# Whose email also comes from domains of another name.
_OTHER_DOMAINS = {
    "americanexpress": ("aexp",),
    "colissimo": ("laposte",),
    "google": ("youtube", "gmail"),
    "icloud": ("apple",),
    "impots": ("gouv.fr",),
    "instagram": ("facebook",),
    "mercadopago": ("mercadolivre", "mercadolibre"),
    "onedrive": ("microsoft",),
    "outlook": ("microsoft",),
    "sharepoint": ("microsoft",),
    "whatsapp": ("facebook",),
}
BRANDS = {name: (name, *_OTHER_DOMAINS.get(name, ())) for name in _OWN_NAMES.split()}
_WORD = re.compile(r"[a-z0-9]+")
_DIGITS = str.maketrans("01358", "olseb")


def _look(word: str) -> str:
    return word.translate(_DIGITS).replace("i", "l")


_BY_LOOK = {_look(name): name for name in BRANDS}


def imitated(name: str, domain: str) -> str:
    """Return the company whose name is shown although the domain is not one of its own; else ""."""
    words = _WORD.findall(plain_letters(name).translate(TO_LATIN))[:MAX_WORDS]
    if "via" in words:  # a mailing list wrote it
        return ""
    spoken = {*words, *(one + other for one, other in pairwise(words))}
    spoken |= {_BY_LOOK.get(_look(word), "") for word in words if not word.isalpha()}
    own = domain.replace("-", "")
    found = (
        brand for brand in sorted(spoken & BRANDS.keys()) if not any(each in own for each in BRANDS[brand])
    )
    return next(found, "")

"""Well-known companies whose names fraud borrows, and what their own domains contain."""

import re

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
    " adac aldi bancodobrasil chronopost detran dpd geeksquad gls homedepot ionos kaufland livelo"
    " mondialrelay norton receitafederal rewe siriusxm telekom tmobile unitedhealthcare ups xfinity"
)
# Whose email also comes from domains of another name.
_OTHER_DOMAINS = {
    "americanexpress": ("aexp",),
    "bancodobrasil": ("bb.com.br",),
    "colissimo": ("laposte",),
    "detran": ("gov.br",),
    "geeksquad": ("bestbuy",),
    "google": ("youtube", "gmail"),
    "icloud": ("apple",),
    "impots": ("gouv.fr",),
    "instagram": ("facebook",),
    "mercadopago": ("mercadolivre", "mercadolibre"),
    "onedrive": ("microsoft",),
    "outlook": ("microsoft",),
    "receitafederal": ("gov.br", "fazenda"),
    "sharepoint": ("microsoft",),
    "unitedhealthcare": ("uhc",),
    "whatsapp": ("facebook",),
    "xfinity": ("comcast",),
}
BRANDS = {name: (name, *_OTHER_DOMAINS.get(name, ())) for name in _OWN_NAMES.split()}
_WORD = re.compile(r"[a-z0-9]+")
_CAPITAL_I = re.compile(r"(?<=[a-z])I+(?=[a-zI]|\b)")  # for a small L
_DIGITS = str.maketrans("01358", "olseb")


def _look(word: str) -> str:
    return word.translate(_DIGITS).replace("i", "l")


_BY_LOOK = {_look(name): name for name in BRANDS}


def imitated(name: str, domain: str) -> str:
    """Return the company whose name is shown although the domain is not one of its own; else ""."""
    written = _CAPITAL_I.sub(lambda found: "l" * len(found[0]), name)
    words = _WORD.findall(plain_letters(written).translate(TO_LATIN))[:MAX_WORDS]
    if "via" in words:  # a mailing list wrote it
        return ""
    spoken = {"".join(words[at : at + length]) for at in range(len(words)) for length in (1, 2, 3)}
    spoken |= {_BY_LOOK.get(_look(word), "") for word in words if not word.isalpha()}
    own = domain.replace("-", "") if "." in domain else ""  # no company writes from a name without a dot
    found = (
        brand for brand in sorted(spoken & BRANDS.keys()) if not any(each in own for each in BRANDS[brand])
    )
    return next(found, "")

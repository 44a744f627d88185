"""Numbers that prove themselves by a checksum: IBAN, payment cards, addresses of cryptocurrencies."""

import hashlib
import re
import string

_IBAN = re.compile(r"[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}+")
# ISO 13616: how many letters and digits an account number of a country has.
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18"
    " DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23"
    " IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31"
    " MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24"
    " SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
IBAN_LENGTHS = {each[:2]: int(each[2:]) for each in _LENGTHS.split()}
_NUMBER_OF = {each: str(int(each, 36)) for each in string.digits + string.ascii_letters}
CARD_LENGTHS = range(13, 20)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_ENDS = (1, 0x2BC830A3)  # BIP 173, BIP 350
_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_ETHEREUM = re.compile(r"0[xX][0-9a-fA-F]{40}")
_BECH32_ADDRESS = re.compile(rf"(bc|tb|ltc)1([{_BECH32}]{{30,80}})")


def iban_at(text: str, start: int) -> str | None:
    """Return the IBAN that is written there, without blanks, if its two check digits are right."""
    found = _IBAN.match(text, start)
    if found is None or (start and text[start - 1].isalnum()):
        return None
    letters = "".join(letter for letter in found[0] if letter.isalnum()).upper()
    letters = letters[: IBAN_LENGTHS.get(letters[:2], 0)]
    return letters if is_iban(letters) else None


def is_iban(letters: str) -> bool:
    """ISO 7064, 97-10."""
    if not letters.isascii() or len(letters) != IBAN_LENGTHS.get(letters[:2]):
        return False
    return int("".join(map(_NUMBER_OF.__getitem__, letters[4:] + letters[:4]))) % 97 == 1


def is_card(digits: str) -> bool:
    """ISO/IEC 7812: the issuers of payment cards, and the check digit of Luhn."""
    if len(digits) not in CARD_LENGTHS or digits[0] not in "23456":
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(each - 9 * (each > 9) for each in doubled)) % 10 == 0


def is_hexadecimal(small: str) -> bool:
    return _HEXADECIMAL.fullmatch(small) is not None


def is_crypto(written: str) -> bool:
    """Return whether it is an address of Bitcoin, Litecoin, Dogecoin, Tron or Ethereum."""
    if _ETHEREUM.fullmatch(written):
        return True
    if written[:3].lower() in ("bc1", "tb1", "ltc"):
        return _is_bech32(written.lower())
    return 26 <= len(written) <= 35 and written[0] in "13LMDTA9" and _is_base58(written)


def _is_base58(written: str) -> bool:
    """The last four bytes are the beginning of the hash of the others, hashed twice."""
    number = 0
    for letter in written:
        place = _BASE58.find(letter)
        if place < 0:
            return False
        number = number * 58 + place
    zeros = len(written) - len(written.lstrip("1"))
    content = b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    twice = hashlib.sha256(hashlib.sha256(content[:-4]).digest()).digest()
    return len(content) == 25 and content[-4:] == twice[:4]


def _is_bech32(written: str) -> bool:
    found = _BECH32_ADDRESS.fullmatch(written)
    if found is None:
        return False
    prefix = [ord(letter) for letter in found[1]]
    values = [*(each >> 5 for each in prefix), 0, *(each & 31 for each in prefix)]
    checked = 1
    for value in (*values, *map(_BECH32.index, found[2])):
        top = checked >> 25
        checked = (checked & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            checked ^= generator * (top >> place & 1)
    return checked in _BECH32_ENDS

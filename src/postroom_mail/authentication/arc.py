"""ARC: results that forwarders saw before an email came here, each with its own seal (RFC 8617)."""

from msgspec import Struct

from postroom_mail.authentication.canonical import Field, SplitMail, relaxed_field
from postroom_mail.authentication.dkim_verify import (
    BODY_FORMS,
    FIELD_FORMS,
    KEY_KINDS,
    MAX_SIGNATURE_BYTES,
    DkimSignature,
    SignatureRefused,
    decode,
    find_key,
    require_algorithm,
    require_body_hash,
    require_covered,
    require_current,
    require_valid,
    signed_bytes,
    without_signature_value,
)
from postroom_mail.authentication.lookup import DnsTemporary, TimedLookup
from postroom_mail.authentication.organization import ascii_domain
from postroom_mail.authentication.tags import BadTags, parse_tags

MAX_SETS = 50  # section 5.1.1.1
RESULTS, MESSAGE, SEAL = "arc-authentication-results", "arc-message-signature", "arc-seal"
# Sections 4.1.2 and 4.1.3: of DKIM-Signature without v=; a seal covers no list of fields of its own.
REQUIRED = {MESSAGE: ("a", "b", "bh", "d", "h", "s"), SEAL: ("a", "b", "cv", "d", "s")}


class ArcVerdict(Struct, frozen=True):
    """none, pass, fail or temperror; the sealers, first one first, and what that one saw."""

    verdict: str
    sealers: tuple[str, ...] = ()
    first_results: str = ""

    def vouches_for(self, domain: str, trusted: tuple[str, ...]) -> bool:
        """Return whether every sealer is trusted, and the first saw DMARC pass for this author."""
        if self.verdict != "pass" or not all(_is_trusted(each, trusted) for each in self.sealers):
            return False
        parts = [part.lower().split() for part in self.first_results.split(";")]
        return any(part[:1] == ["dmarc=pass"] and f"header.from={domain}" in part for part in parts)


class ArcSet(Struct, frozen=True):
    """The three fields that one forwarder added."""

    results: Field
    message: Field
    seal: Field

    @property
    def fields(self) -> tuple[Field, Field, Field]:
        """In the order in which a seal covers them."""
        return self.results, self.message, self.seal


def check_arc(mail: SplitMail, lookup: TimedLookup, now: float) -> ArcVerdict:
    """Checks the whole chain (section 5.2): if one link is broken, nothing counts."""
    if not has_sets(mail):
        return ArcVerdict("none")
    if not mail.is_sound:
        return ArcVerdict("fail")
    try:
        sets = collect_sets(mail)
        seals = [_read(each.seal, SEAL, now) for each in sets]
        _require_chain(seals)
        _require_message(_read(sets[-1].message, MESSAGE, now), mail, lookup)
        for number in range(len(sets), 0, -1):
            _require_seal(seals[number - 1], sets[:number], lookup)
    except SignatureRefused:
        return ArcVerdict("fail")
    except DnsTemporary:
        return ArcVerdict("temperror")
    first = sets[0].results.value.replace(b"\r\n", b"").decode("utf-8", "replace")
    return ArcVerdict("pass", tuple(seal.domain for seal in seals), first)


def has_sets(mail: SplitMail) -> bool:
    return any(mail.named(name) for name in (RESULTS, MESSAGE, SEAL))


def _is_trusted(domain: str, trusted: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in trusted)


def collect_sets(mail: SplitMail) -> list[ArcSet]:
    """Collect the sets ordered by number, none missing and none twice."""
    found = {name: _by_instance(mail.named(name)) for name in (RESULTS, MESSAGE, SEAL)}
    numbers = list(range(1, len(found[SEAL]) + 1))
    if not numbers or any(sorted(fields) != numbers for fields in found.values()):
        raise SignatureRefused("fail")
    return [ArcSet(found[RESULTS][i], found[MESSAGE][i], found[SEAL][i]) for i in numbers]


def _by_instance(fields: list[Field]) -> dict[int, Field]:
    if len(fields) > MAX_SETS:
        raise SignatureRefused("fail")
    by_number = {_instance(field): field for field in fields}
    if len(by_number) != len(fields):
        raise SignatureRefused("fail")
    return by_number


def _instance(field: Field) -> int:
    """Return the tag i=, at any position; in the results it is the first."""
    for part in field.value[:MAX_SIGNATURE_BYTES].split(b";"):
        name, _, value = part.partition(b"=")
        if name.strip() == b"i" and value.strip().isdigit() and len(value.strip()) <= 2:
            return int(value)
    raise SignatureRefused("fail")


def _read(field: Field, name: str, now: float) -> DkimSignature:
    if len(field.raw) > MAX_SIGNATURE_BYTES:
        raise SignatureRefused("fail")
    try:
        tags = parse_tags(field.value)
    except BadTags as error:
        raise SignatureRefused("fail") from error
    domain = ascii_domain(tags.get("d", ""))
    forms = tags.get("c", "simple/simple") if name == MESSAGE else "relaxed/relaxed"
    field_form, _, body_form = forms.partition("/")
    body_form = body_form or "simple"
    is_whole = all(tags.get(each) for each in REQUIRED[name]) and not (name == SEAL and "h" in tags)
    if not is_whole or domain is None or field_form not in FIELD_FORMS or body_form not in BODY_FORMS:
        raise SignatureRefused("fail")
    require_algorithm(tags["a"])
    require_current(tags, now)
    del tags["i"]  # a number here, and no identity as of DKIM
    return DkimSignature(field, tags, domain, field_form, body_form)


def _require_chain(seals: list[DkimSignature]) -> None:
    """Require the first seal to have seen no chain, and every other a whole one (section 5.2)."""
    if [seal.tags["cv"].lower() for seal in seals] != ["none", *["pass"] * (len(seals) - 1)]:
        raise SignatureRefused("fail")


def _require_message(signature: DkimSignature, mail: SplitMail, lookup: TimedLookup) -> None:
    key = find_key(signature, KEY_KINDS[signature.tags["a"]], lookup)
    require_body_hash(signature, mail.body, {})
    require_covered(signature, mail)
    require_valid(key, decode(signature.tags["b"]), signed_bytes(signature, mail))


def _require_seal(seal: DkimSignature, sets: list[ArcSet], lookup: TimedLookup) -> None:
    """Verify a seal over all sets up to its own, relaxed, without its own value (section 5.1.1)."""
    key = find_key(seal, KEY_KINDS[seal.tags["a"]], lookup)
    fields = [field for each in sets for field in each.fields]
    last = Field(seal.field.name, without_signature_value(seal.field.raw))
    signed = b"\r\n".join([relaxed_field(field) for field in (*fields[:-1], last)])
    require_valid(key, decode(seal.tags["b"]), signed)

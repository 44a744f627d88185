"""Who wrote a mail, or to whom it goes, in the few words that a row has room for."""

from postroom.mail.address import parse_list


def name_of(field: str) -> str:
    """Names, or addresses where there are none."""
    found = parse_list(field[:2000])
    return ", ".join(each.name or each.address for each in found[:3]) or field[:100] or "nobody"

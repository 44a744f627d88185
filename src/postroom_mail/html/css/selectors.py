"""Matches CSS selectors with an element and its ancestors, as far as one pass can know them."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from msgspec import Struct, field

Specificity = tuple[int, int, int]


class PlacedElement(Protocol):
    """An element in the page, as far as known when its start tag is read."""

    name: str
    attributes: dict[str, str]
    classes: frozenset[str]
    identity: str
    parent: "PlacedElement | None"
    before: "PlacedElement | None"  # the sibling
    number: int  # among its siblings, from 1
    number_of_type: int


class MatchBudget:
    """How many comparisons an email may still cost."""

    def __init__(self, left: int) -> None:
        self.left = left


class Inner(Struct):
    """`:not()` and `:is()` with their arguments."""

    is_negated: bool
    selectors: "list[Selector]"


class Attribute(Struct):
    name: str
    sign: str
    value: str
    ignores_case: bool

    def fits(self, attributes: dict[str, str]) -> bool:
        found = attributes.get(self.name)
        if found is None or not self.sign:
            return found is not None
        wanted = self.value
        if self.ignores_case:
            found, wanted = found.lower(), wanted.lower()
        if self.sign == "=":
            return found == wanted
        if self.sign == "~=":
            return wanted in found.split()
        if self.sign == "|=":
            return found == wanted or found.startswith(f"{wanted}-")
        if not wanted:
            return False
        if self.sign == "^=":
            return found.startswith(wanted)
        return found.endswith(wanted) if self.sign == "$=" else wanted in found


class Compound(Struct):
    """The conditions on one element. `is_undecided`: one of them cannot be known here."""

    type: str = ""
    identity: str = ""
    classes: list[str] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    inner: list[Inner] = field(default_factory=list)
    counts: list[tuple[str, int, int]] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    is_undecided: bool = False
    is_never: bool = False

    @property
    def is_simple(self) -> bool:
        """Return whether the start tag alone decides."""
        inner_are = all(each.is_simple for part in self.inner for each in part.selectors)
        return not self.counts and inner_are and "root" not in self.states

    def fits(self, place: PlacedElement, steps: MatchBudget) -> bool | None:
        """Return whether the steps match. None: a browser may find that they do."""
        if self.type and self.type != place.name:
            return False
        if self.is_never or (self.identity and self.identity != place.identity):
            return False
        if self.classes and not place.classes.issuperset(self.classes):
            return False
        if not all(each.fits(place.attributes) for each in self.attributes):
            return False
        if not all(_has_state(place, state) for state in self.states):
            return False
        if not all(_is_counted(place, *count) for count in self.counts):
            return False
        answer = _all_inner(self.inner, place, steps) if self.inner else True
        return None if answer and self.is_undecided else answer


def _all_inner(parts: Sequence[Inner], place: PlacedElement, steps: MatchBudget) -> bool | None:
    answer: bool | None = True
    for part in parts:
        found = _any(part.selectors, place, steps)
        if part.is_negated:
            found = None if found is None else not found
        if found is False:
            return False
        answer = None if found is None else answer
    return answer


def _any(selectors: "Sequence[Selector]", place: PlacedElement, steps: MatchBudget) -> bool | None:
    answer: bool | None = False
    for selector in selectors:
        found = selector.fits(place, steps)
        if found:
            return True
        answer = None if found is None else answer
    return answer


def _has_state(place: PlacedElement, state: str) -> bool:
    if state == "root":
        return place.name == "html"
    if state == "link":
        return place.name in ("a", "area") and "href" in place.attributes
    if state == "checked":
        return "checked" in place.attributes or "selected" in place.attributes
    if state == "disabled":
        return "disabled" in place.attributes
    return state != "open" or "open" in place.attributes


def _is_counted(place: PlacedElement, kind: str, step: int, offset: int) -> bool:
    number = place.number_of_type if kind.endswith("of-type") else place.number
    beyond = number - offset
    if step == 0:
        return beyond == 0
    return beyond % step == 0 and beyond // step >= 0


class Selector(Struct):
    """From the element outwards: the last compound is matched first."""

    compounds: list[Compound]
    combinators: list[str]  # before each compound but the first, in the order of `compounds`
    specificity: Specificity = (0, 0, 0)

    @property
    def key(self) -> Compound:
        return self.compounds[0]

    @property
    def is_simple(self) -> bool:
        return len(self.compounds) == 1 and self.key.is_simple

    def _all(self) -> "Iterator[Selector]":
        """Yield all selectors, including nested ones."""
        yield self
        for compound in self.compounds:
            for part in compound.inner:
                for each in part.selectors:
                    yield from each._all()

    def is_possible(
        self, types: AbstractSet[str], classes: AbstractSet[str], identities: AbstractSet[str]
    ) -> bool:
        """Return whether it can match in a page with only these types, classes and ids."""
        return all(
            (not compound.type or compound.type in types)
            and (not compound.classes or all(each in classes for each in compound.classes))
            and (not compound.identity or compound.identity in identities)
            for compound in self.compounds
        )

    @property
    def asks_siblings(self) -> bool:
        return any(sign in "+~" for each in self._all() for sign in each.combinators) or any(
            compound.counts for each in self._all() for compound in each.compounds
        )

    @property
    def asks_attributes(self) -> bool:
        """Besides class and id, and those with their own meaning."""
        compounds = [compound for each in self._all() for compound in each.compounds]
        return any(compound.attributes or compound.states for compound in compounds)

    def fits(self, place: PlacedElement, steps: MatchBudget) -> bool | None:
        answer = self.key.fits(place, steps)
        if answer is False or len(self.compounds) == 1:
            return answer
        outer = self._fits_around(1, place, steps)
        return False if outer is False else (None if outer is None or answer is None else True)

    def _fits_around(self, number: int, place: PlacedElement, steps: MatchBudget) -> bool | None:
        if number == len(self.compounds):
            return True
        answer: bool | None = False
        for other in _around(place, self.combinators[number - 1]):
            steps.left -= 1
            if steps.left <= 0:
                return None
            found = self.compounds[number].fits(other, steps)
            if found is False:
                continue
            further = self._fits_around(number + 1, other, steps)
            if found and further:
                return True
            if further is not False:
                answer = None
        return answer


def _around(place: PlacedElement, combinator: str) -> Iterator[PlacedElement]:
    if combinator == ">":
        if place.parent is not None:
            yield place.parent
    elif combinator == "+":
        if place.before is not None:
            yield place.before
    elif combinator == "~":
        other = place.before
        while other is not None:
            yield other
            other = other.before
    else:
        other = place.parent
        while other is not None:
            yield other
            other = other.parent

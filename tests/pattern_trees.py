"""Regular expressions as trees: where one can read the same characters in two ways, and so take forever.

Three forms are looked for. *Nested*: inside of a repetition, another one whose characters can as well belong
to the next round, as in `(a+)*`. *Adjacent*: two repetitions side by side that can share their characters
between them, as in `a*a*`. A possessive one (`a*+`, `(?>a*)`) gives nothing back, and is no danger there.
*Restarting*: in a search, a repetition that may be entered at each of its own characters, runs on from all of
them and fails at the end, as in `a+b` or `<[^>]*>`. What stands before decides: `(?<!a)a+b` is entered once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

# By name: whether mypy knows these parts of the library differs with its version and what it read before.
compiler, op, parser = (import_module(f"re._{name}") for name in ("compiler", "constants", "parser"))

MANY = 10  # rounds: what repeats so often or less adds little
ENDLESS = 1000  # what repeats less, and shares its characters with a neighbour, has an end soon
OTHERS = "\u00a0\u00e9\u0130\u0300\u0663\u05d0\u202e\u2028\u3002\u65e5\uac00\ufeff\uff0e\U0001f600"

Node = tuple[Any, Any]
Chars = frozenset[str]
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
OF_ONE = (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY)
WITHOUT_WIDTH = (op.AT, op.ASSERT, op.ASSERT_NOT)


@dataclass(frozen=True)
class Tree:
    pattern: re.Pattern[Any]
    known: dict[str, Chars] = field(default_factory=dict, compare=False)

    @cached_property
    def root(self) -> Any:
        return parser.parse(self.pattern.pattern, self.pattern.flags & ~re.DEBUG)

    @cached_property
    def alphabet(self) -> list[str]:
        """Characters that the pattern tells apart: its own, those next to them, one of each other kind."""
        if isinstance(self.pattern.pattern, bytes):
            return [chr(code) for code in range(256)]
        codes = {*range(128), *map(ord, OTHERS)}
        for code in list(_codes(self.root)):
            codes |= {code - 1, code, code + 1}
        return [chr(code) for code in sorted(codes) if 0 <= code <= 0x10FFFF]

    def ambiguities(self) -> list[str]:
        return sorted({*self._nested(self.root), *self._adjacent(self.root)})

    def restarts(self) -> list[str]:
        return sorted(
            {
                f"restarting: {_show(repeat)}"
                for before, repeat, behind in self._ways(list(self.root), [], [])
                if self._is_entered_again(before, repeat, behind)
            }
        )

    def _is_entered_again(self, before: Sequence[Node], repeat: Node, behind: Sequence[Node]) -> bool:
        if repeat[1][1] <= ENDLESS or all(map(_is_nullable, behind)):
            return False
        if any(node[0] in WITHOUT_WIDTH and not _looks_ahead(node) for node in before):
            return False
        return self._can_be_of([*before, *_body(repeat)], self._chars([repeat]))

    def _ways(
        self, nodes: Sequence[Node], before: Sequence[Node], behind: Sequence[Node]
    ) -> Iterator[tuple[Sequence[Node], Node, Sequence[Node]]]:
        """Each repetition, with all that stands before it and behind it on its way through the pattern."""
        for place, node in enumerate(nodes):
            earlier, later = [*before, *nodes[:place]], [*nodes[place + 1 :], *behind]
            if node[0] in REPEATS:
                yield earlier, node, later
            for body in _bodies(node):
                yield from self._ways(body, earlier, later)

    def _nested(self, nodes: Sequence[Node]) -> Iterator[str]:
        """Of each repetition: an inner one that could as well take what begins the next round."""
        for node in _all(nodes):
            if _is_many(node):
                for inner, behind in self._repeats(_body(node), ()):
                    taken = self._chars([inner])
                    if self._can_be_of(behind, taken) and taken & self._first(_body(node)):
                        yield f"nested: {_show(inner)} inside of {_show(node)}"

    def _adjacent(self, nodes: Sequence[Node]) -> Iterator[str]:
        for sequence in _sequences(nodes):
            for place, node in enumerate(sequence):
                if _is_many(node) and node[0] is not op.POSSESSIVE_REPEAT:
                    for other in self._reached(sequence[place + 1 :], self._chars([node])):
                        is_endless = max(node[1][1], other[1][1]) > ENDLESS
                        if is_endless and self._can_be_of(_body(node), self._chars([other])):
                            yield f"adjacent: {_show(node)} and {_show(other)}"

    def _reached(self, nodes: Sequence[Node], taken: Chars) -> Iterator[Node]:
        """Repetitions of characters that a repetition before could give them, whatever stands between."""
        for node in nodes:
            if _is_many(node) and taken & self._first([node]):
                yield node
            for body in _bodies(node):
                yield from self._reached(body, taken)
            if not self._can_be_of([node], taken):
                return

    def _can_be_of(self, nodes: Sequence[Node], chars: Chars) -> bool:
        """Whether there is a text of all these that has no other characters."""
        return all(
            _is_nullable(node)
            or (
                bool(self._of_one(node) & chars)
                if node[0] in OF_ONE
                else any(self._can_be_of(body, chars) for body in _bodies(node))
            )
            for node in nodes
        )

    def _repeats(
        self, nodes: Sequence[Node], behind: Sequence[Node]
    ) -> Iterator[tuple[Node, Sequence[Node]]]:
        """Repetitions of no fixed length that can give back, each with what follows it inside of `nodes`."""
        for place, node in enumerate(nodes):
            rest = [*nodes[place + 1 :], *behind]
            if node[0] in (op.MAX_REPEAT, op.MIN_REPEAT):
                least, most, body = node[1]
                if most > 1 and least != most:
                    yield node, rest
                yield from self._repeats(body, rest)
            elif node[0] is op.SUBPATTERN:
                yield from self._repeats(node[1][3], rest)
            elif node[0] is op.BRANCH:
                for branch in node[1][1]:
                    yield from self._repeats(branch, rest)

    def _first(self, nodes: Sequence[Node]) -> Chars:
        """The characters with which a text of these can begin."""
        found: Chars = frozenset()
        for node in nodes:
            if node[0] in OF_ONE:
                return found | self._of_one(node)
            for body in _bodies(node):
                found |= self._first(body)
            if not _is_nullable(node):
                return found
        return found

    def _chars(self, nodes: Sequence[Node]) -> Chars:
        """All that can stand in a text of these."""
        found: Chars = frozenset()
        for node in _all(nodes):
            if node[0] in OF_ONE:
                found |= self._of_one(node)
        return found

    def _of_one(self, node: Node) -> Chars:
        """Asked of the compiler itself, so that flags and classes count as they do in the pattern."""
        name = str(node)
        if name not in self.known:
            self.known[name] = self._asked(node)
        return self.known[name]

    def _asked(self, node: Node) -> Chars:
        made = compiler.compile(_alone(self.root, node), self.pattern.flags & ~re.DEBUG)
        if isinstance(self.pattern.pattern, bytes):
            return frozenset(each for each in self.alphabet if made.match(each.encode("latin-1")))
        return frozenset(each for each in self.alphabet if made.match(each))


def _looks_ahead(node: Node) -> bool:
    """`(?=…)` and `(?!…)` hold at every place alike; `\\b`, `^` and what looks back hold at few of a run."""
    return node[0] in (op.ASSERT, op.ASSERT_NOT) and node[1][0] > 0


def _alone(root: Any, node: Node) -> Any:
    return parser.SubPattern(root.state, [node])


def _body(node: Node) -> Sequence[Node]:
    body: Sequence[Node] = node[1][2].data
    return body


def _bodies(node: Node) -> Iterator[Sequence[Node]]:
    """What stands inside of a node and takes characters."""
    kind, given = node
    if kind in REPEATS:
        yield given[2].data
    elif kind is op.SUBPATTERN:
        yield given[3].data
    elif kind is op.ATOMIC_GROUP:
        yield given.data
    elif kind is op.BRANCH:
        yield from (branch.data for branch in given[1])
    elif kind is op.GROUPREF_EXISTS:
        yield from (branch.data for branch in given[1:] if branch is not None)


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for body in _bodies(node):
            yield from _all(body)


def _sequences(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Each run of nodes, with the groups inside of it opened: they stand between the same neighbours."""
    yield _opened(nodes)
    for node in nodes:
        for body in _bodies(node):
            yield from _sequences(body)


def _opened(nodes: Sequence[Node]) -> Sequence[Node]:
    opened: list[Node] = []
    for node in nodes:
        if node[0] is op.SUBPATTERN:
            opened += _opened(list(node[1][3]))
        else:
            opened.append(node)
    return opened


def _is_many(node: Node) -> bool:
    return node[0] in REPEATS and node[1][1] > MANY and node[1][0] != node[1][1]


def _is_nullable(node: Node) -> bool:
    kind, given = node
    if kind in OF_ONE:
        return False
    if kind in WITHOUT_WIDTH:
        return True
    if kind in REPEATS:
        return given[0] == 0 or all(map(_is_nullable, given[2]))
    if kind is op.BRANCH:
        return any(all(map(_is_nullable, branch)) for branch in given[1])
    return any(all(map(_is_nullable, body)) for body in _bodies(node)) or kind is op.GROUPREF


def _codes(nodes: Any) -> Iterator[int]:
    """Numbers of the characters that a tree names."""
    for kind, given in nodes:
        if kind in (op.LITERAL, op.NOT_LITERAL):
            yield given
        elif kind is op.RANGE:
            yield from given
        elif kind is op.IN:
            yield from _codes(given)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            continue
        else:
            for body in _bodies((kind, given)):
                yield from _codes(body)


def _show(node: Node) -> str:
    return str(node)[:100]

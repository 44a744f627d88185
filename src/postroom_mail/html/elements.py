"""The elements of a page in the order of the walk, and the steps between them."""

from postroom_mail.html.css.selectors import PlacedElement
from postroom_mail.html.layout import BLOCKS, LAID_OUT
from postroom_mail.html.look import Look
from postroom_mail.html.markup import Open
from postroom_mail.html.visibility import ElementKind

MAX_LEVELS = 50  # looked through for the box that something is placed in
MORE = 3  # a tag does more to the page than up to two breaks
LINKED = ("a", "area")
SPOKEN = ("alt", "title", "aria-label", "content")


class Element:
    """An element in the page. Elements that look the same, by style and ancestors, share one object."""

    __slots__ = ("attributes", "before", "breaks", "children", "classes", "counts", "depth", "identity",
                 "inner", "last", "look", "name", "number", "number_of_type", "outer", "parent", "steps",
                 "tag", "tbody")  # fmt: skip

    def __init__(
        self, tag: Open, kind: ElementKind, outer: "Element | None", parent: "Element | None"
    ) -> None:
        self.name = kind.name
        self.attributes = kind.attributes
        self.classes = kind.classes
        self.identity = kind.identity
        self.tag = tag  # the last tag that opened it
        self.parent: PlacedElement | None = parent
        self.outer = outer if outer is not None else self  # where the walk continues after its end
        self.depth: int = outer.depth + 1 if outer is not None else 0
        self.before: PlacedElement | None = None
        self.number = self.number_of_type = 1
        self.breaks = 0  # before and after it, if that is all it does to the text
        self.inner: dict[object, Element] = {}
        self.steps: dict[object, Step] = {}  # by the keys of tags
        self.children = 0
        self.counts: dict[str, int] = {}
        self.last: Element | None = None
        self.tbody: Element | None = None
        self.look: Look

    @property
    def key(self) -> object:
        return self.tag.key

    def count_among(self, parent: "Element") -> None:
        parent.children += 1
        parent.counts[self.name] = parent.counts.get(self.name, 0) + 1
        self.number, self.number_of_type = parent.children, parent.counts[self.name]
        self.before, parent.last = parent.last, self

    def effect_of_start(self, tag: Open) -> int:
        if self.look.is_placed:
            return MORE
        if self.breaks:
            return self.breaks
        if tag.name in LAID_OUT:
            return 0 if self.look.removed else MORE
        if tag.name == "img" or (tag.name in LINKED and "href" in tag.attributes):
            return MORE
        return 0 if tag.attributes.keys().isdisjoint(SPOKEN) else MORE

    def effect_of_end(self) -> int:
        return self.breaks or (0 if self.look.removed or self.name not in BLOCKS else MORE)


# Where a tag leads, what it does to the page, and the look of its element.
Step = tuple[Element, int, Look]


class Covers:
    """Opaque boxes that are laid over others: which boxes they cover, and where the text in those begins."""

    def __init__(self) -> None:
        self.covered: set[Element] = set()
        self.doubted_to = 0  # the parts of the page that were written before the last cover
        self._begun: dict[Element, tuple[int, int]] = {}
        self._doubtful: dict[Look, Look] = {}

    def begin(self, element: Element, parts: int, chars: int) -> tuple[int, int] | None:
        """Record what is on the page before a placed box. Return where the text behind a cover begins."""
        self.covered.discard(element)  # an earlier box that looked the same
        self._begun[element] = parts, chars
        if not element.look.is_cover:
            return None
        box = element.outer
        for _ in range(MAX_LEVELS):  # CSS 2.2, section 10.1
            if box.look.is_placed:
                break
            box = box.outer
        self.covered.add(box)
        start, before = self._begun.get(box, (0, 0))
        return max(start, self.doubted_to), before

    def look_of(self, element: Element) -> Look:
        """Return the look of text after a cover: in doubt, unless in a placed box, which is drawn above."""
        box = element
        for _ in range(MAX_LEVELS):
            if box in self.covered:
                break
            if box.look.is_placed or box.outer is box:
                return element.look
            box = box.outer
        known = self._doubtful.get(element.look)
        if known is None:
            known = self._doubtful[element.look] = Look(element.look)
            known.doubt = True
            known.evaluate()
        return known

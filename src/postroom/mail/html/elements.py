"""The elements of a page in the order of the walk, and the steps between them."""

from postroom.mail.html.css.selectors import PlacedElement
from postroom.mail.html.layout import BLOCKS, LAID_OUT
from postroom.mail.html.look import Look
from postroom.mail.html.markup import Open
from postroom.mail.html.visibility import ElementKind

MORE = 3  # a tag does more to the page than up to two breaks
LINKED = ("a", "area")
SPOKEN = ("alt", "title", "aria-label", "content")


class Element:
    """An element in the page. Elements that cannot be told apart, by style or ancestors, share one object."""

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

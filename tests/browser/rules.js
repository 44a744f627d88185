// Which rules a page breaks. Whether letters can be read is asked once for each look of them: it follows from
// their colour and size and from all that lies behind them, and pages share nearly all of that. In the second
// light view of a page only rules about colours and places are asked, unless it shows what no view has shown.
// Parts of the frame around all pages are asked about again only where they differ from what was asked about.
async ([isLight, knownLooks, knownTags, knownParts]) => {
  const ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const OF_COLOURS = ["color-contrast", "link-in-text-block"];
  const OF_PLACES = ["target-size", "scrollable-region-focusable"];
  const LETTERS = ["color", "font-size", "font-weight", "text-shadow"];
  const OF_LINKS = ["color", "font-weight", "text-decoration-line", "border-bottom-style"];
  const BEHIND = ["background-color", "background-image", "opacity", "filter", "mix-blend-mode"];
  const NOTHING = "rgba(0, 0, 0, 0)|none|1|none|normal";
  const FIELDS = "input:not([type=checkbox], [type=radio]), select, textarea";
  const OUT_OF_USE = ":disabled, [aria-disabled=true], option, script, style, title, [inert]";
  const FRAME = "body > :not(main), #rail :is(.brand, li, details)";
  const DIFFERING = / (data-ask|data-shown|aria-current|hx-nonce|hx-get|value)="[^"]*"/g;
  const IDS = /\b[a-z]{2,4}_[0-9a-f]{20,}|\d+/g;
  const isKnown = new Set(knownLooks), backgrounds = new Map(), looks = new Map(), links = new Set();
  const kinds = new Set();
  const valuesOf = (element, names) => {
    const style = getComputedStyle(element);
    return names.map(name => style.getPropertyValue(name)).join("|");
  };

  // What stands outside the flow can lie upon anything, so without a ground of its own it is asked by its tag.
  function backgroundOf(element) {
    const style = getComputedStyle(element);
    const around = backgrounds.get(element.parentElement) ?? {list: "", isOpen: false};
    const isOpen = around.isOpen || ["absolute", "fixed"].includes(style.position);
    const [own, isGround] = [valuesOf(element, BEHIND), style.backgroundColor.startsWith("rgb(")];
    return {list: own === NOTHING ? around.list : `${around.list}\n${own}`, isOpen: isOpen && !isGround};
  }

  function lookOf(element) {
    const {list, isOpen} = backgrounds.get(element);
    if (isOpen && isLight) return null;
    return (isOpen ? `${element.tagName}.${element.className} ` : "") + valuesOf(element, LETTERS) + list;
  }

  function isToBeRead(element) {
    const {width, right, bottom} = element.getBoundingClientRect();
    const isInSight = element.checkVisibility({visibilityProperty: true}) && width > 1 && right > 0 && bottom > 0;
    return isInSight && !element.closest(OUT_OF_USE);
  }

  // Rows of a list look the same: one of each kind is asked about.
  function isToBeAsked(element) {
    const look = looks.get(element), {tagName, className, parentElement: parent} = element;
    const kind = [look, tagName, className, parent?.tagName, parent?.className].join(" ");
    if (look === null) return true;
    if (look === undefined || isKnown.has(look) || kinds.has(kind)) return false;
    return kinds.add(kind);
  }

  function nameOf(part) {
    const html = part.outerHTML.replace(DIFFERING, "").replace(IDS, "#");
    const sum = [...html].reduce((sum, letter) => (sum * 31 + letter.charCodeAt()) | 0, 0);
    return `${innerWidth} ${html.length} ${sum}`;
  }

  for (const element of document.querySelectorAll("*")) {
    backgrounds.set(element, backgroundOf(element));
    const hasText = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if ((hasText || element.matches(FIELDS)) && isToBeRead(element)) looks.set(element, lookOf(element));
    element.toggleAttribute("data-ask", Boolean(isToBeAsked(element)));
    if (element.matches("a"))
      links.add(`${valuesOf(element, OF_LINKS)} in ${valuesOf(element.parentElement, OF_LINKS)}`);
  }
  const isNew = document.querySelector("[data-ask]") || [...links].some(link => !isKnown.has(link));
  if (!isLight && !isNew) return {broken: [], looks: [], tags: [], parts: [], asked: null};

  const isFirst = isLight && !document.querySelector("[data-shown]");
  const tags = new Set();
  if (isLight)
    for (const element of document.querySelectorAll(":not([data-shown])"))
      if (element.checkVisibility()) {
        if (!isFirst) tags.add(element.cloneNode(false).outerHTML.replace(IDS, "#"));
        element.toggleAttribute("data-shown", true);
      }
  const isWhole = isFirst || [...tags].some(tag => !knownTags.includes(tag));
  const rules = !isLight ? OF_COLOURS : isWhole ? ALL : [...OF_COLOURS, ...OF_PLACES];

  axe.configure({rules: [{id: "color-contrast", selector: "[data-ask]"}]});
  axe.addReporter("as it is", (results, _, done) => done(results));
  const parts = isLight ? [...document.querySelectorAll(FRAME)].map(part => ({part, name: nameOf(part)})) : [];
  const isAskedAgain = ({part, name}) => !knownParts.includes(name) || part.matches(":has([data-ask]), [data-ask]");
  const exclude = parts.filter(each => !isAskedAgain(each)).map(({part}) => part);
  const results = await axe.run({include: [document], exclude}, {runOnly: rules, reporter: "as it is"});
  const broken = results.flatMap(({id, violations}) => violations.slice(0, 3).map(({node, any}) =>
    `${id}: ${node.element.outerHTML.slice(0, 160)} ${any[0]?.message.slice(0, 160) ?? ""}`));
  const {passes, incomplete} = results.find(({id}) => id === "color-contrast");
  const answered = isLight
    ? [...passes, ...incomplete].map(({node}) => node.element) : document.querySelectorAll("[data-ask]");
  const asked = [...answered].map(element => looks.get(element)).filter(look => look);
  const seen = {looks: [...new Set(asked), ...links], tags: [...tags], parts: parts.map(({name}) => name)};
  return {broken, ...seen, asked: results.length};
}

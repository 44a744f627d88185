// Which rules a page breaks. What can be told without axe is: letters on one plain ground whose colours differ
// enough, and targets that nothing else is near. About others axe is asked, once for each look of letters: whether
// they can be read follows from their colour and size and from all that lies behind them, and pages share nearly
// all of that. In the second light view of a page only rules about colours and places are asked, unless it shows
// what no view has shown. Parts of the frame around all pages are asked about again only where they differ from
// what was asked about.
async ([isLight, knownLooks, knownTags, knownParts]) => {
  const ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const LETTERS = ["color", "fontSize", "fontWeight", "textShadow"];
  const OF_LINKS = ["color", "fontWeight", "textDecorationLine", "borderBottomStyle"];
  const BEHIND = ["backgroundColor", "backgroundImage", "opacity", "filter", "mixBlendMode"];
  const AS_IT_IS = "|none|1|none|normal";
  const NOTHING = `rgba(0, 0, 0, 0)${AS_IT_IS}`;
  const FIELDS = "input:not([type=checkbox], [type=radio]), select, textarea";
  const OUT_OF_USE = ":disabled, [aria-disabled=true], option, script, style, title, [inert]";
  const TARGETS = "a[href], area, button, input, select, textarea, summary, [tabindex][role]";
  const FRAME = "body > :not(main), #rail :is(.brand, li, details)";
  const DIFFERING = / (data-ask|data-near|data-shown|hx-nonce|hx-get|value)="[^"]*"/g;
  const IDS = /\b[a-z]{2,4}_[0-9a-f]{20,}|\d+/g;
  const LEAST_CONTRAST = 4.5, LEAST_SIZE = 24, SCROLLED = 13;
  const isKnown = new Set([...knownLooks, ...knownParts]), kinds = new Set();
  const backgrounds = new Map(), looks = new Map(), links = new Set(), readable = new Set();
  const valuesOf = (style, names) => names.map(name => style[name]).join("|");

  function nameOf(part) {
    const html = part.outerHTML.replace(DIFFERING, "").replace(IDS, "#");
    const sum = [...html].reduce((sum, letter) => (sum * 31 + letter.charCodeAt()) | 0, 0);
    return `${isLight} ${innerWidth} ${document.body.className} ${html.length} ${sum}`;
  }

  // What stands outside the flow can lie upon anything.
  function backgroundOf(element, style) {
    const around = backgrounds.get(element.parentElement) ?? {list: "", isOpen: false, isPlain: true};
    const isOpen = around.isOpen || ["absolute", "fixed"].includes(style.position);
    const [own, isGround] = [valuesOf(style, BEHIND), style.backgroundColor.startsWith("rgb(")];
    const isPlain = own === NOTHING || (isGround && own === style.backgroundColor + AS_IT_IS);
    return {
      list: own === NOTHING ? around.list : `${around.list}\n${own}`,
      ground: isGround ? style.backgroundColor : around.ground,
      isOpen: isOpen && !isGround,
      isPlain: around.isPlain && isPlain,
    };
  }

  function whatLiesBehind(element) {
    const {left, top, width, height} = element.getBoundingClientRect();
    const stack = document.elementsFromPoint(left + width / 2, top + height / 2);
    const behind = stack.slice(stack.indexOf(element)).map(each => valuesOf(getComputedStyle(each), BEHIND));
    return stack.includes(element) ? behind.join("\n") : null;
  }

  function lookOf(element, style) {
    const {list, isOpen} = backgrounds.get(element);
    const behind = isOpen ? whatLiesBehind(element) : "";
    if (behind === null && isLight) return null;
    return `${valuesOf(style, LETTERS)}${list}${behind ?? `${element.tagName}.${element.className}`}`;
  }

  function lightness(colour) {
    const [red, green, blue] = colour.match(/[\d.]+/g).map(value =>
      value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function isPlainlyReadable(element, {color, textShadow}) {
    const {ground, isOpen, isPlain} = backgrounds.get(element);
    if (!ground || isOpen || !isPlain || textShadow !== "none" || !color.startsWith("rgb(")) return false;
    const [darker, lighter] = [lightness(color), lightness(ground)].sort((one, other) => one - other);
    return (lighter + 0.05) / (darker + 0.05) >= LEAST_CONTRAST;
  }

  function isToBeRead(element, {clipPath}) {
    const {width, right, bottom} = element.getBoundingClientRect();
    const isInSight = element.checkVisibility({visibilityProperty: true}) && width > 1 && right > 0 && bottom > 0;
    return isInSight && clipPath !== "inset(50%)" && !element.closest(OUT_OF_USE);
  }

  // Rows of a list look the same: one of each kind is asked about.
  function isToBeAsked(element, look) {
    const {tagName, className, parentElement: parent} = element;
    const kind = [look, tagName, className, parent?.tagName, parent?.className].join(" ");
    if (look !== null && (isKnown.has(look) || readable.has(look) || kinds.has(kind))) return false;
    return kinds.add(kind);
  }

  function seeLetters(element, style) {
    const look = lookOf(element, style);
    looks.set(element, look);
    if (isPlainlyReadable(element, style)) readable.add(look);
    else if (isToBeAsked(element, look)) element.toggleAttribute("data-ask", true);
  }

  function see(element) {
    const style = getComputedStyle(element);
    backgrounds.set(element, backgroundOf(element, style));
    const hasText = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if ((hasText || element.matches(FIELDS)) && isToBeRead(element, style)) seeLetters(element, style);
    if (element.matches("a")) {
      const around = getComputedStyle(element.parentElement);
      links.add(`${valuesOf(style, OF_LINKS)} in ${valuesOf(around, OF_LINKS)}`);
    }
  }

  function seeAll(root) {
    if (!root.checkVisibility() || known.includes(root)) return;
    see(root);
    for (const element of root.children) seeAll(element);
  }

  // Enough for axe is a square in the middle to itself; if the target is smaller, a circle that meets no other's.
  function isApart(one, other) {
    const isLarge = ({width, height}) => width >= LEAST_SIZE && height >= LEAST_SIZE;
    const [x, y] = [one.left + one.width / 2, one.top + one.height / 2];
    const across = Math.max(other.left - x, x - other.right), along = Math.max(other.top - y, y - other.bottom);
    const isFree = Math.max(across, along) >= LEAST_SIZE / 2;
    if (isLarge(one)) return isFree;
    const between = Math.hypot(x - other.left - other.width / 2, y - other.top - other.height / 2);
    const isOverlapped = across < one.width / 2 && along < one.height / 2;
    return isFree && !isOverlapped && (isLarge(other) || between >= LEAST_SIZE);
  }

  // What lies under a fixed bar is scrolled out from there.
  function markTargets() {
    const bars = [...document.querySelectorAll("body > *, nav")].filter(each => getComputedStyle(each).position === "fixed");
    const isFixed = target => bars.some(bar => bar.contains(target));
    const seen = [...document.querySelectorAll(TARGETS)].filter(each => each.checkVisibility());
    const all = seen.map(target => ({target, isFixed: isFixed(target), place: target.getBoundingClientRect()}));
    const visible = all.filter(({place}) => place.width > 1);
    const isNear = (one, other) =>
      other.target !== one.target && other.isFixed === one.isFixed && !isApart(one.place, other.place);
    for (const one of visible.filter(({target}) => !isOfKnownPart(target)))
      one.target.toggleAttribute("data-near", visible.some(other => isNear(one, other)));
  }

  // What is scrolled with the keyboard: by itself, or by going to something in it.
  function isScrolledByPointer(element) {
    const {scrollWidth, clientWidth, scrollHeight, clientHeight} = element;
    if (scrollWidth <= clientWidth + SCROLLED && scrollHeight <= clientHeight + SCROLLED) return false;
    if (!/auto|scroll/.test(getComputedStyle(element).overflow)) return false;
    const isReached = each => each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true});
    return ![element, ...element.querySelectorAll(TARGETS)].some(isReached);
  }

  const parts = [...document.querySelectorAll(FRAME)].map(part => ({part, name: nameOf(part)}));
  const known = parts.filter(({name}) => isKnown.has(name)).map(({part}) => part);
  const isOfKnownPart = element => known.some(part => part.contains(element));
  for (const element of document.querySelectorAll("[data-ask]")) element.toggleAttribute("data-ask", false);
  seeAll(document.documentElement);

  const isFirst = isLight && !document.querySelector("[data-shown]");
  const tags = new Set();
  if (isLight) {
    for (const element of document.querySelectorAll(":not([data-shown])"))
      if (element.checkVisibility()) {
        if (!isFirst) tags.add(element.cloneNode(false).outerHTML.replace(IDS, "#"));
        element.toggleAttribute("data-shown", true);
      }
    markTargets();
  }
  const isWhole = isFirst || [...tags].some(tag => !knownTags.includes(tag));
  const needed = {
    "color-contrast": document.querySelector("[data-ask]") !== null,
    "link-in-text-block": [...links].some(link => !isKnown.has(link)),
    "target-size": isLight && document.querySelector("[data-near]") !== null,
    "scrollable-region-focusable": isLight && [...document.querySelectorAll("body *")].some(isScrolledByPointer),
  };
  const rules = isWhole ? ALL : Object.keys(needed).filter(rule => needed[rule]);
  const seen = {looks: [...readable, ...links], tags: [...tags], parts: parts.map(({name}) => name)};
  if (rules.length === 0) return {broken: [], ...seen};

  axe.configure({rules: [
    {id: "color-contrast", selector: "[data-ask]"}, {id: "target-size", selector: "[data-near]"},
  ]});
  axe.addReporter("as it is", (results, _, done) => done(results));
  const left = Object.entries(needed).filter(([, isNeeded]) => !isNeeded).map(([rule]) => [rule, {enabled: false}]);
  const options = {runOnly: rules, rules: isWhole ? Object.fromEntries(left) : {}, reporter: "as it is"};
  const results = await axe.run({include: [document], exclude: isLight ? known : []}, options);
  if (results.length < rules.length) throw new Error("rules were not asked");
  const broken = results.flatMap(({id, violations}) => violations.slice(0, 3).map(({node, any}) =>
    `${id}: ${node.element.outerHTML.slice(0, 160)} ${any[0]?.message.slice(0, 160) ?? ""}`));
  const {passes, incomplete} = results.find(({id}) => id === "color-contrast") ?? {passes: [], incomplete: []};
  const answered = isLight
    ? [...passes, ...incomplete].map(({node}) => node.element) : document.querySelectorAll("[data-ask]");
  const asked = [...answered].map(element => looks.get(element)).filter(look => look);
  return {broken, ...seen, looks: [...seen.looks, ...asked]};
}

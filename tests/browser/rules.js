// Which rules a page breaks. Whether letters can be read is asked once for each look of them: it follows from
// their colour and size and from all that lies behind them, and pages share nearly all of that.
async ([rules, legible]) => {
  const LETTERS = ["color", "font-size", "font-weight", "text-shadow"];
  const BEHIND = ["background-color", "background-image", "opacity", "filter", "mix-blend-mode"];
  const NOTHING = "rgba(0, 0, 0, 0)|none|1|none|normal";
  const FIELDS = "input, select, textarea";
  const known = new Set(legible), backgrounds = new Map(), looks = new Map();

  // What stands outside the flow can lie upon anything, so without a ground of its own it has no look.
  function backgroundOf(element, style, values) {
    const around = backgrounds.get(element.parentElement) ?? {list: "", isOpen: false};
    const isOpen = around.isOpen || ["absolute", "fixed"].includes(style.position);
    const [own, isGround] = [values(BEHIND), style.backgroundColor.startsWith("rgb(")];
    return {list: own === NOTHING ? around.list : `${around.list}\n${own}`, isOpen: isOpen && !isGround};
  }

  for (const element of document.querySelectorAll("*")) {
    const style = getComputedStyle(element);
    const values = names => names.map(name => style.getPropertyValue(name)).join("|");
    const background = backgroundOf(element, style, values);
    backgrounds.set(element, background);
    const hasText = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (hasText || element.matches(FIELDS))
      looks.set(element, background.isOpen ? null : values(LETTERS) + background.list);
    element.toggleAttribute("data-ask", looks.has(element) && !known.has(looks.get(element)));
  }

  axe.configure({rules: [{id: "color-contrast", selector: "[data-ask]"}]});
  axe.addReporter("as it is", (results, _, done) => done(results));
  const results = await axe.run(document, {runOnly: rules, reporter: "as it is"});
  const broken = results.flatMap(({id, violations}) => violations.slice(0, 3).map(({node, any}) =>
    `${id}: ${node.element.outerHTML.slice(0, 160)} ${any[0]?.message.slice(0, 160) ?? ""}`));
  const passed = results.find(({id}) => id === "color-contrast").passes.map(({node}) => looks.get(node.element));
  return {broken, legible: [...new Set(passed)].filter(look => look), asked: results.length};
}

"use strict";
// Formatting: the buttons write the marks that can be typed as well, around what is selected or before its lines.
const LINE_MARKS = {list: "- ", quote: "> "};
document.addEventListener("click", (event) => {
  const kind = event.target.closest("[data-format]")?.dataset.format;
  if (!kind) return;
  const {body, formatted} = event.target.form.elements;
  const isOfLines = kind in LINE_MARKS;
  const start = isOfLines ? body.value.lastIndexOf("\n", body.selectionStart - 1) + 1 : body.selectionStart;
  const chosen = body.value.slice(start, body.selectionEnd) || (isOfLines ? "" : "text");
  const before = LINE_MARKS[kind] || (kind === "bold" ? "**" : "[");
  const after = isOfLines ? "" : kind === "bold" ? "**" : "](https://)";
  const inner = isOfLines ? chosen.replaceAll("\n", `\n${before}`) : chosen;
  body.focus();
  body.setSelectionRange(start, body.selectionEnd);
  document.execCommand("insertText", false, before + inner + after);
  body.setSelectionRange(start + before.length, start + before.length + inner.length);
  formatted.checked = true;
});
for (const bar of all("[data-toolbar]")) bar.hidden = false;

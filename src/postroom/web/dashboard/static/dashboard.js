"use strict";
// All of it is comfort: every page can be read, and every form sent, without it.
const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Times in the reader's zone; the exact one stays in the title.
const sameDay = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit"});
const sameYear = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "short", hour: "2-digit", minute: "2-digit"});
const toTheSecond = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit"});
const longAgo = new Intl.DateTimeFormat(undefined, {dateStyle: "medium"});
function showTimes(within) {
  const now = new Date();
  for (const element of all("time[datetime]", within)) {
    const at = new Date(element.dateTime);
    const form = element.classList.contains("exact") ? toTheSecond : at.toDateString() === now.toDateString() ? sameDay
      : at.getFullYear() === now.getFullYear() ? sameYear : longAgo;
    element.textContent = form.format(at);
  }
}

function refresh(within) {
  showTimes(within);
  watchReading();
  showZone();
  const rail = $("#rail");
  if (!rail) return;
  const held = Number(rail.dataset.held);
  document.title = (held ? `(${held}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  const icon = $("#favicon");
  const wanted = held ? icon.dataset.waiting : icon.dataset.idle;
  if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}

// A decision: its buttons wait until the end of each part of what is decided was on the screen. Other contents begin anew.
const ended = new Set();
let reading = null;
function watchReading() {
  reading?.disconnect();
  const form = $("form[data-decides]");
  if (!form) return;
  const about = form.dataset.decides, hint = $(".unread-hint", form);
  const parts = sessionStorage.getItem("read") === about ? [] : all("[data-end]", form.closest("article"));
  const name = (part) => `${about} ${parts.indexOf(part)}`;
  const show = () => {
    const isRead = parts.every((part) => ended.has(name(part)));
    for (const button of all("button[name=decision]", form)) button.disabled = !isRead;
    hint.hidden = isRead;
    if (isRead) sessionStorage.setItem("read", about);
  };
  form.classList.add("watched");
  show();
  const covered = form.offsetHeight + parseFloat(getComputedStyle(form).bottom);
  reading = new IntersectionObserver((found) => {
    for (const {target, intersectionRatio} of found) if (intersectionRatio > .5 && !document.hidden) ended.add(name(target));
    show();
  }, {rootMargin: `0px 0px -${Math.ceil(covered)}px`, threshold: [0, .6, 1]});
  for (const part of parts) reading.observe(part);
  $("[data-read-on]", form).onclick = () => parts.find((part) => !ended.has(name(part)))?.scrollIntoView({block: "center"});
}
addEventListener("resize", watchReading);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("fresh");
    say("Copied.");
  } else if (event.target.closest("[data-help]")) {
    showKeys();
  }
});

// Only keys that do something on this page.
const WORKS = {
  "/": () => true, g: () => true, j: () => rows().length, Enter: () => rows().length, Esc: () => $("[data-back]"),
  t: () => $(".message .tabs"), n: () => all(".message")[1],
};
const works = (key) => key in WORKS ? WORKS[key]() : $(`main [data-key="${CSS.escape(key)}"]`);
function showKeys() {
  for (const term of all("#help dt")) term.hidden = term.nextElementSibling.hidden = !works($("kbd", term).textContent);
  for (const each of all("#help [data-of]")) each.hidden = !$(`#rail [data-go="${each.dataset.of}"]`);
  $("#help").showModal();
}

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm || event.target.dataset.confirm;
  if (question && !window.confirm(question)) return void event.preventDefault();
  // A moment is chosen in the reader's zone; the server gets it in UTC beside it.
  for (const input of all("input[type=datetime-local]", event.target))
    if (input.value) event.target.elements[`${input.name}Utc`].value = new Date(input.value).toISOString();
});
function showZone() {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const element of all("[data-zone]")) element.textContent = zone;
}

// A form that was refused comes back as it was filled in, with the reason at its field; what is secret or a file is
// chosen anew.
const isKept = (field) => field.name && !["hidden", "password", "file", "submit"].includes(field.type);
document.addEventListener("submit", ({target}) => {
  const fields = [...target.elements].filter(isKept).map(({name, value, checked}) => [name, value, checked]);
  sessionStorage.setItem("form", JSON.stringify({action: target.getAttribute("action"), fields}));
});
function fillInAgain() {
  const {action, fields} = JSON.parse(sessionStorage.getItem("form") || "{}");
  sessionStorage.removeItem("form");
  const alert = $("[data-refused]");
  const form = alert && all("form[method=post]").find((each) => each.getAttribute("action") === action);
  if (!form) return;
  [...form.elements].filter(isKept).forEach((field, at) => {
    if (fields[at]?.[0] === field.name) [, field.value, field.checked] = fields[at];
  });
  const fold = form.closest("details");
  if (fold) fold.open = true;
  form.scrollIntoView({block: "nearest"});
  const name = alert.dataset.refused;
  const wrong = name && [...form.elements].find((field) => field.name === name && field.type !== "hidden");
  if (!wrong) return;
  (wrong.closest("label, .address") || wrong).before(alert);
  wrong.setAttribute("aria-invalid", "true");
  wrong.setAttribute("aria-describedby", alert.id);
  wrong.focus();
}

// Ticks: with Shift all rows between the last one and this one.
let lastTicked = null;
function tickTo(box) {
  const boxes = all("[data-row] input[type=checkbox]");
  const [from, to] = [boxes.indexOf(lastTicked), boxes.indexOf(box)].sort((one, other) => one - other);
  if (from >= 0) for (const each of boxes.slice(from, to + 1)) each.checked = box.checked;
}
document.addEventListener("click", (event) => {
  const box = event.target.closest("[data-row] input[type=checkbox], [data-all]");
  if (!box) return;
  if (box.matches("[data-all]")) for (const each of all("[data-row] input[type=checkbox]", box.form)) each.checked = box.checked;
  else if (event.shiftKey) tickTo(box);
  lastTicked = box;
  const count = all("[data-row] input:checked").length;
  for (const element of all("[data-ticked]")) element.textContent = `${count} selected`;
});

// A list: j and k move through its rows, Enter opens, and Esc comes back to the row that was left.
const rows = () => all("[data-row]");
const place = (path) => `row:${path}`;
function moveBy(step) {
  const list = rows();
  if (!list.length) return;
  const at = list.findIndex((row) => row.contains(document.activeElement));
  const next = list[Math.min(Math.max(at + step, 0), list.length - 1)];
  focusRow(next);
}
function focusRow(row) {
  const target = row.matches("a, [tabindex]") ? row : $("a", row);
  target.focus();
  target.scrollIntoView({block: "nearest"});
}
function rowOf(element) { return element?.closest?.("[data-row]") }

addEventListener("pagehide", () => {
  const row = rowOf(document.activeElement);
  if (row) sessionStorage.setItem(place(location.pathname), `${row.dataset.row} ${rows().indexOf(row)}`);
});
function restoreRow() {
  const left = sessionStorage.getItem(place(location.pathname));
  if (!left || document.activeElement !== document.body || location.hash) return;
  const [id, number] = left.split(" ");
  const list = rows();
  const row = list.find((each) => each.dataset.row === id) || list[Math.min(number, list.length - 1)];
  if (row) focusRow(row);
}

// Beside a thread stands the list it was opened from: it keeps its place, and Esc goes back to the row of the thread.
const beside = $(".beside");
const cameFrom = beside && $("[data-back]");
if (cameFrom) {
  const open = $("[data-row]:has([aria-current])", beside);
  const at = `at:${cameFrom.getAttribute("href")}`;
  sessionStorage.setItem(place(cameFrom.pathname), `${cameFrom.dataset.left} ${rows().indexOf(open)}`);
  beside.scrollTop = sessionStorage.getItem(at) ?? 0;
  if (open) {
    const [top, room] = [open.offsetTop - beside.offsetTop, beside.clientHeight - open.offsetHeight];
    if (top < beside.scrollTop || top > beside.scrollTop + room) beside.scrollTop = top - room / 2;
  }
  addEventListener("pagehide", () => sessionStorage.setItem(at, beside.scrollTop));
}

let waitsForPlace = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (event.key === "Escape") {
    if ($("dialog[open]")) return;
    if (isTyping) return void event.target.blur();
    const back = $("[data-back]");
    if (back) back.click();
    return;
  }
  if (isTyping || $("dialog[open]")) return;
  const used = event.key === "g" ? (waitsForPlace = Date.now() + 1500)
    : Date.now() < waitsForPlace ? goTo(event.key) : act(event.key);
  if (used) event.preventDefault();
});
function goTo(key) {
  waitsForPlace = 0;
  const link = $(`#rail a[data-go="${CSS.escape(key)}"]`);
  link?.click();
  return link;
}
function act(key) {
  if (key === "/") return $("#q") ? ($("#q").focus(), true) : (location = "/app/search#q");
  if (key === "?") return showKeys() || true;
  if (key === "n" || key === "p") if (messageBy(key === "n" ? 1 : -1)) return true;
  if (key === "j" || key === "k") return moveBy(key === "j" ? 1 : -1) || true;
  if (key === "t") return nextTab();
  // A page names its keys: data-key on what the key presses. One in a row works where the focus is in the row.
  const row = rowOf(document.activeElement);
  const name = `[data-key="${CSS.escape(key)}"]`;
  const target = (row && $(name, row)) || all(name).find((each) => !rowOf(each));
  if (key === "X" && row) return $("input[type=checkbox]", row)?.dispatchEvent(new MouseEvent("click", {bubbles: true, shiftKey: true}));
  if (!target) return false;
  if (target.disabled) return say("Read to the end of the email first.") || true;
  // What was not opened by hand is only reached by a key, and pressed by the next.
  const bulk = target.closest(".bulk");
  if (bulk && !$("[data-row] :checked", target.form)) {
    if (!row) return false;
    $("input[type=checkbox]", row).checked = true;
  }
  if (target.matches("textarea, select, input:not([type=checkbox]), [data-reach]")) target.focus();
  else target.click();
  if (target.matches("summary")) $("button, textarea", target.parentElement)?.focus();
  return true;
}

// A thread: to the next or previous message; Enter opens one of a line.
function messageBy(step) {
  const list = all(".message");
  if (list.length < 2) return false;
  const here = list.findIndex((each) => each.contains(document.activeElement) || `#${each.id}` === location.hash);
  const next = list[Math.min(Math.max((here < 0 ? list.length - 1 : here) + step, 0), list.length - 1)];
  const target = next.matches(".one-line") ? $("a", next) : next;
  target.focus();
  return target;
}

function nextTab() {
  const message = document.getElementById(location.hash.slice(1)) || all("article.sheet.message").at(-1);
  const list = message ? all(".tabs > a", message) : [];
  const at = list.findIndex((tab) => tab.hasAttribute("aria-current"));
  return list.length && (list[(at + 1) % list.length].click() || true);
}

// Live: the server says that something happened and where; what wants to know asks for it.
let last = document.body.dataset.last;
let brokenAt = null;
function say(text) {
  const line = $("#live");
  if (!line) return;
  line.textContent = text;
  clearTimeout(say.timer);
  if (text) say.timer = setTimeout(showConnection, 2500);
}
function showConnection() {
  const since = brokenAt && sameDay.format(brokenAt);
  $("#live").textContent = since ? `Not live since ${since}. Trying again…` : "";
}
document.addEventListener("htmx:ws:before:connection", (event) => {
  const url = new URL(event.detail.connection.url);
  url.searchParams.set("after", last);
  event.detail.connection.url = url.href;
});
document.addEventListener("htmx:ws:after:connection", () => {
  brokenAt = null;
  showConnection();
  document.body.dataset.live = "yes";
});
document.addEventListener("htmx:ws:close", (event) => {
  delete document.body.dataset.live;
  if (event.detail.code === 4001) return void location.reload();
  if (document.hidden) return;
  brokenAt ??= new Date();
  setTimeout(() => brokenAt && showConnection(), 1500);
});
document.addEventListener("htmx:ws:after:message:incoming", async (event) => {
  const news = await event.detail.message.json();
  last = news.last || last;
  tell("live");
  for (const kind of Object.keys(news.counts)) tell(`live-${kind.replace("message.", "")}`);
  for (const where of news.places) if (where) tell(`live-${where}`);
  announce(news);
});
// htmx drops what is triggered on a part while its successor is on the way: that is triggered again on the successor.
const told = new Map(), toldBefore = new WeakMap();
const trigger = (name) => document.body.dispatchEvent(new CustomEvent(name));
let tellings = 0;
function tell(name) {
  told.set(name, ++tellings);
  trigger(name);
}
document.addEventListener("htmx:before:request", ({detail}) => toldBefore.set(detail.ctx, tellings));
document.addEventListener("htmx:finally:request", ({detail}) => {
  for (const [name, at] of told) if (at > toldBefore.get(detail.ctx)) trigger(name);
});

// New rows come by themselves only where nobody is reading; else a button says how many there are.
let newRows = 0;
function announce(news) {
  const button = $("#news");
  if (!button) return;
  const counts = Object.entries(news.counts);
  const wanted = button.dataset.of;
  newRows += counts.reduce((sum, [kind, count]) => sum + (!wanted || kind === wanted ? count : 0), 0);
  const isReading = scrollY > 8 || rowOf(document.activeElement) || button.dataset.paused
    || all("[data-row] input:checked, [data-row][open], [data-row] [open]").length;
  if (!isReading) return takeNews();
  if (newRows) {
    button.hidden = false;
    button.textContent = `${newRows} new`;
  }
}
function takeNews() {
  newRows = 0;
  $("#news").hidden = true;
  tell("rows");
}
document.addEventListener("click", (event) => {
  if (event.target.closest("#news")) { scrollTo(0, 0); takeNews() }
  const pause = event.target.closest("[data-tail]");
  if (!pause) return;
  const isPaused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", isPaused);
  $("#news").dataset.paused = isPaused ? "yes" : "";
  if (!isPaused) takeNews();
});

// What is replaced between the press of a button and its release loses the click: it waits, and is asked for again.
let isPressed = false, isLate = false;
addEventListener("pointerdown", (event) => { isPressed = event.button === 0 }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => {
  isPressed = false;
  if (isLate) for (const name of told.keys()) trigger(name);
  isLate = false;
}), true);
document.addEventListener("htmx:before:swap", (event) => {
  if (!isPressed) return;
  event.preventDefault();
  isLate = true;
});
// What comes anew by itself waits while somebody has his hand on it, or has opened something in it.
document.addEventListener("htmx:before:request", (event) => {
  const part = event.target;
  if (part instanceof Element && part.matches("[data-calm]") && (part.matches(":focus-within") || $("[open]", part))) event.preventDefault();
});
// Rows that were asked for before somebody went to one must not take the focus from him, and a message that comes
// anew must not close the menu that he has just opened.
let heldRow = "", opened = [];
const nameOf = (fold) => fold.firstElementChild.textContent;
document.addEventListener("htmx:before:swap", () => {
  heldRow = rowOf(document.activeElement)?.dataset.row;
  opened = all("article[id] details[open]").map((fold) => [fold.closest("article").id, nameOf(fold)]);
});
document.addEventListener("htmx:after:swap", () => {
  for (const [id, name] of opened) {
    const fold = all(`[id="${CSS.escape(id)}"] details`).find((each) => nameOf(each) === name);
    fold?.setAttribute("open", "");
  }
  refresh(document);
  const row = heldRow && document.activeElement === document.body && rows().find((each) => each.dataset.row === heldRow);
  if (row) focusRow(row);
});
// What can be taken back: struck out where it stands, and gone with its notice when its time is over.
const isAbout = (id) => all(`form[action*="${CSS.escape(id)}"]`).map((form) => form.closest("tr, li, [data-row]")).filter(Boolean);
for (const notice of all(".notice:has([data-undo])")) {
  const leaving = (notice.dataset.delayed || "").split(" ").filter(Boolean).flatMap(isAbout);
  for (const row of leaving) row.classList.add("leaving");
  setTimeout(() => { for (const each of [notice.dataset.delayed ? notice : $("[data-undo]", notice), ...leaving]) each.remove() }, 1000 * (notice.dataset.seconds || 10));
}
// Density: the reader's own choice, on this device.
const isDense = () => localStorage.getItem("density") === "dense";
document.documentElement.classList.toggle("dense", isDense());
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-density]");
  if (!button) return;
  localStorage.setItem("density", isDense() ? "" : "dense");
  document.documentElement.classList.toggle("dense", isDense());
  button.setAttribute("aria-pressed", isDense());
});
for (const button of all("[data-density]")) { button.hidden = false; button.setAttribute("aria-pressed", isDense()) }
refresh(document);
restoreRow();
fillInAgain();
// A browser ignores autofocus where the address names a place, and takes the focus away when it goes there.
const GOES_TO = {"#answer": "#body", "#q": "#q"};
if (location.hash in GOES_TO) addEventListener("load", () => setTimeout(() => $(GOES_TO[location.hash])?.focus()));
document.addEventListener("change", (event) => { if (event.target.matches("[data-submit]")) event.target.form.requestSubmit() });

// The API reference: search, the key in the examples, and requests from the page.
const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const EXAMPLE_ID = /\b([a-z]{3,4})_4fz8k2m7q1x9\b/g;
const token = $("#token");

const node = (name, text, kind = "") => Object.assign(document.createElement(name), {textContent: text, className: kind});

// Search: the contents show only what has all words.
const find = $("#find");
const clear = () => {
  find.value = "";
  search();
};
const search = () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  document.body.classList.toggle("searching", words.length > 0);
  for (const item of all(".contents li")) {
    item.hidden = !words.every((word) => item.dataset.words.toLowerCase().includes(word));
  }
  for (const group of all(".contents details")) {
    group.hidden = !$("li:not([hidden])", group);
    group.dataset.open ??= group.open;
    group.open = words.length ? !group.hidden : group.dataset.open === "true";
  }
  for (const section of all(".contents section")) section.hidden = !$("li:not([hidden])", section);
  $("#none").hidden = Boolean($(".contents li:not([hidden])"));
};
find.addEventListener("input", search);
find.addEventListener("keydown", (event) => {
  const first = $(".contents li:not([hidden]) a");
  if (event.key === "Enter" && find.value && first) first.click();
  if (event.key === "Escape") clear();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  find.focus();
});
$(".contents").addEventListener("click", (event) => {
  if (!event.target.closest("a")) return;
  $("#contents").checked = false;
  clear();
});

const mark = () => {
  const here = `${location.pathname}${location.hash}`;
  for (const link of all(".contents a")) link.classList.toggle("here", link.getAttribute("href") === here);
};
addEventListener("hashchange", mark);

// The key stays in this tab, and stands in every example.
const fill = () => {
  for (const place of all("[data-key]")) place.textContent = token.value || "pr_…";
};
const keep = (value) => {
  token.value = value;
  sessionStorage.setItem("key", value);
  fill();
};
token.addEventListener("input", () => keep(token.value.trim()));
$("#key").addEventListener("submit", (event) => event.preventDefault());
const say = (text, link = "") => {
  $("#said").textContent = text;
  if (link) $("#said").append(Object.assign(node("a", "Sign in"), {href: link}));
};
const make = async () => {
  const answer = await fetch("/app/reference/key", {method: "POST", redirect: "manual"});
  if (answer.type === "opaqueredirect") say("Paste a key, or sign in to create one here. ", "/app");
  else if (!answer.ok) say("You cannot create a key for the whole account. Paste one.");
  else {
    keep((await answer.json()).token);
    say("This key can do what you can, for one hour. Revoke it in Settings, API keys.");
  }
  return token.value;
};
$("#make").addEventListener("click", make);

// Ids from answers replace those of the examples.
const known = () => JSON.parse(sessionStorage.getItem("ids") || "{}");
const learn = (text) => {
  const ids = known();
  for (const [id, kind] of text.matchAll(/(?<=")([a-z]{3,4})_[0-9a-z]{6,}(?=")/g)) ids[kind] = id;
  sessionStorage.setItem("ids", JSON.stringify(ids));
  use();
};
const use = () => {
  const ids = known();
  for (const field of all(".try input[placeholder]")) {
    const [found] = field.placeholder.matchAll(EXAMPLE_ID);
    if (found && ids[found[1]] && !field.value) field.value = ids[found[1]];
  }
  for (const field of all(".try textarea")) {
    field.value = field.value.replace(EXAMPLE_ID, (example, kind) => ids[kind] || example);
  }
};

const request = (form) => {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const field of all("[data-in]", form)) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    else if (field.dataset.in === "query" && value) query.append(field.name, value);
    else if (field.dataset.in === "header" && (value || field.name === "Idempotency-Key")) {
      headers[field.name] = value || crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
    }
  }
  const body = form.elements.body?.value.trim();
  if (body) headers["Content-Type"] = "application/json";
  return [`${path}${query.size ? `?${query}` : ""}`, {method: form.dataset.method, headers, body: body || undefined}];
};
const show = async (outcome, answer, milliseconds) => {
  const head = node("p", "", "answered");
  head.append(node("span", `${answer.status} ${answer.statusText}`, `state ${answer.ok ? "green" : "red"}`));
  head.append(node("small", `${milliseconds} ms · ${answer.headers.get("X-Request-Id") ?? ""}`));
  outcome.replaceChildren(head);
  const kind = answer.headers.get("Content-Type") ?? "";
  if (/json/.test(kind)) {
    const text = await answer.text();
    learn(text);
    outcome.append(node("pre", JSON.stringify(JSON.parse(text), null, 2), "plain"));
  } else if (/^(text|message|application\/xml)/.test(kind)) outcome.append(node("pre", await answer.text(), "plain"));
  else if (answer.status !== 204) {
    const content = await answer.blob();
    const link = node("a", `Download ${content.size.toLocaleString()} bytes of ${kind}`);
    outcome.append(Object.assign(link, {href: URL.createObjectURL(content), download: "answer"}));
  }
};
const send = async (form) => {
  const outcome = $(".outcome", form);
  const [path, options] = request(form);
  if (!("public" in form.dataset)) {
    const key = token.value || (await make());
    if (!key) return outcome.replaceChildren(node("p", "This needs an API key. Paste one above.", "alert")), token.focus();
    options.headers.Authorization = `Bearer ${key}`;
  }
  outcome.replaceChildren(node("p", "Waiting for the answer…", "muted"));
  const began = performance.now();
  try {
    await show(outcome, await fetch(path, options), Math.round(performance.now() - began));
  } catch {
    outcome.replaceChildren(node("p", "The server does not answer. Check that it runs.", "alert"));
  }
};
addEventListener("submit", (event) => {
  if (!event.target.dataset.path) return;
  event.preventDefault();
  const button = $("button:not([type])", event.target);
  button.disabled = true;
  send(event.target).finally(() => (button.disabled = false));
});

// One choice of a language for all examples.
const choose = (language) => {
  for (const each of all(`[value=${language}]`)) each.checked = true;
};
addEventListener("change", (event) => {
  if (event.target.type !== "radio") return;
  localStorage.setItem("language", event.target.value);
  choose(event.target.value);
});
addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-code]");
  if (!button) return;
  await navigator.clipboard.writeText($("pre", button.parentElement).textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

for (const hidden of all("#find, #key, .try, [data-copy-code]")) hidden.hidden = false;
token.value = sessionStorage.getItem("key") ?? "";
if (localStorage.getItem("language") === "python") choose("python");
fill();
use();
mark();

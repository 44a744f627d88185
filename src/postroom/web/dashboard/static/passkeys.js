"use strict";
// A form with data-passkey asks the device first: "create" adds a passkey, "get" signs in with one.
const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
const toText = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

async function askDevice(form) {
  const answer = await fetch(form.dataset.options, {method: "POST", credentials: "same-origin"});
  if (!answer.ok) throw new Error("This could not be started. Reload the page and try again.");
  const options = await answer.json();
  options.challenge = toBytes(options.challenge);
  for (const each of options.excludeCredentials || []) each.id = toBytes(each.id);
  if (options.user) options.user.id = toBytes(options.user.id);
  return write(await navigator.credentials[form.dataset.passkey]({publicKey: options}));
}

function write({id, rawId, type, response}) {
  const parts = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"])
    if (response[name]) parts[name] = toText(response[name]);
  return JSON.stringify({id, rawId: toText(rawId), type, response: parts});
}

for (const form of document.querySelectorAll("[data-passkey]")) {
  if (window.PublicKeyCredential) form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const failure = form.querySelector("[data-failure]");
    failure.hidden = true;
    try {
      form.elements.credential.value = await askDevice(form);
      form.submit();
    } catch (error) {
      failure.textContent = error.name === "InvalidStateError" ? "This device already has a passkey for you."
        : error.name === "NotAllowedError" ? "The device gave no passkey, or it was not confirmed in time." : error.message;
      failure.hidden = false;
    }
  });
}

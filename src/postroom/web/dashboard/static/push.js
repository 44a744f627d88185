"use strict";
// A form with data-push asks the browser where it can be rung, and sends that.
const bytesOf = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
const textOf = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

async function subscribe(key) {
  if (!("serviceWorker" in navigator) || !("PushManager" in window))
    throw new Error("This browser cannot be notified. On a phone, add this page to the home screen and open it from there.");
  if (await Notification.requestPermission() !== "granted")
    throw new Error("The browser does not let this page show notifications. Allow them in its settings.");
  await navigator.serviceWorker.register("/app/service-worker.js", {scope: "/app"});
  const ready = await navigator.serviceWorker.ready;
  return ready.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: bytesOf(key)});
}

for (const form of document.querySelectorAll("[data-push]"))
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const failure = form.querySelector("[data-failure]");
    failure.hidden = true;
    try {
      const subscription = await subscribe(form.dataset.push);
      form.elements.endpoint.value = subscription.endpoint;
      for (const name of ["p256dh", "auth"]) form.elements[name].value = textOf(subscription.getKey(name));
      form.submit();
    } catch (error) {
      failure.textContent = error.message;
      failure.hidden = false;
    }
  });

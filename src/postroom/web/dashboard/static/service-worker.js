"use strict";
// Runs in the browser while no page is open: shows what waits, and opens the page that decides it.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const {title, body, path, tag} = event.data.json();
  event.waitUntil(self.registration.showNotification(title, {body, tag, renotify: true, data: {path}}));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = new URL(event.notification.data.path, self.location.origin);
  if (url.origin === self.location.origin) event.waitUntil(self.clients.openWindow(url.href));
});

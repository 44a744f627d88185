// Every method of the npm package `agentmail`: called here, or named with the reason why it is not.
import assert from "node:assert/strict";
import { AgentMailClient } from "agentmail";

const { HTTP, SOCKET, KEY, POD } = process.env;
const client = new AgentMailClient({ apiKey: KEY, environment: { http: HTTP, websockets: SOCKET }, maxRetries: 0 });
const driven = new Set();
// What has no counterpart, by the beginning of its name, and what it is given.
const WITHOUT_COUNTERPART = {
    "accounts.list": [],
    "accounts.": ["x"],
    "agent.": [{ username: "x", humanEmail: "ann@there.example", otpCode: "123456" }],
    "inboxes.authorize": ["support@postroom.localhost", { authToken: "x" }],
    "providers.list": [],
    "providers.listAccounts": ["x"],
    "providers.search": [{ q: "xyz" }],
    "providers.": ["x"],
};
const inbox = "support@postroom.localhost";
const odd = "<a/b+c=d@there.example>";
const file = { filename: "a.txt", content: Buffer.from("words").toString("base64") };

function* methodsOf(client, prefix = "") {
    for (let kind = Object.getPrototypeOf(client); kind !== Object.prototype; kind = Object.getPrototypeOf(kind)) {
        for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(kind))) {
            if (name === "constructor" || name.startsWith("_")) continue;
            if (get) yield* methodsOf(client[name], `${prefix}${name}.`);
            else yield `${prefix}${name}`;
        }
    }
}

function drive(name, ...given) {
    driven.add(name);
    const parts = name.split(".");
    const last = parts.pop();
    const owner = parts.reduce((found, part) => found[part], client);
    return owner[last](...given);
}

async function fetchText(url) {
    return await (await fetch(url)).text();
}

async function useInboxes() {
    const made = await drive("inboxes.create", { username: "second", clientId: "i1", metadata: { tier: 3 } });
    assert.equal((await drive("inboxes.create", { username: "third", clientId: "i1" })).inboxId, made.inboxId);
    assert.deepEqual((await drive("inboxes.get", made.inboxId)).metadata, { tier: 3 });
    assert.equal((await drive("inboxes.list", { limit: 1 })).inboxes[0].inboxId, made.inboxId);
    assert.equal((await drive("inboxes.search", { q: "seco" })).count, 1);
    assert.equal((await drive("inboxes.update", made.inboxId, { displayName: "Two" })).displayName, "Two");
    await drive("inboxes.delete", made.inboxId);
    const gone = await drive("inboxes.get", made.inboxId).catch((error) => error);
    assert.deepEqual([gone.constructor.name, gone.statusCode, gone.body.code], ["NotFoundError", 404, "not_found"]);
}

async function useMessages() {
    const page = await drive("inboxes.messages.list", inbox, { labels: ["unread", "received"], subject: ["lamp"] });
    assert.deepEqual(page.messages.map((message) => message.messageId), [odd]);
    const fileId = page.messages[0].attachments[0].attachmentId;
    assert.equal((await drive("inboxes.messages.get", inbox, odd)).subject, "Lamp");
    const raw = await drive("inboxes.messages.getRaw", inbox, odd);
    assert.match(await fetchText(raw.downloadUrl), /Message-ID: <a\/b\+c=d@there.example>/);
    const link = await drive("inboxes.messages.getAttachment", inbox, odd, fileId);
    assert.match(await fetchText(link.downloadUrl), /Hello about Lamp/);
    assert.equal((await drive("inboxes.messages.search", inbox, { q: "Lamp" })).count, 1);
    const labels = (await drive("inboxes.messages.update", inbox, odd, { addLabels: ["Vip"] })).labels;
    assert.deepEqual(labels, ["received", "unread", "vip"]);
    assert.equal((await drive("inboxes.messages.batchGet", inbox, { messageIds: [odd] })).count, 1);
    const change = { messageIds: [odd], removeLabels: ["unread", "vip"] };
    const changed = await drive("inboxes.messages.batchUpdate", inbox, change);
    assert.deepEqual(changed.updates[0].labels, ["received"]);
    const told = (await drive("inboxes.events.list", inbox, { ascending: true })).events;
    const ofOdd = told.filter((each) => each.messageId === odd);
    assert.deepEqual(ofOdd.map((each) => [each.eventType, each.label]), [
        ["label.added", "unread"],
        ["label.added", "vip"],
        ["label.removed", "vip"],
        ["label.removed", "unread"],
    ]);
    await useSending();
    for (const [scope, ...place] of [[""], ["inboxes.", inbox]]) {
        await useThreads(scope, place, page.messages[0].threadId, fileId);
    }
}

async function useSending() {
    const order = { to: "ann@there.example", subject: "Out", text: "x", labels: ["mine"], attachments: [file] };
    const sent = await drive("inboxes.messages.send", inbox, order);
    assert.ok((await drive("inboxes.messages.get", inbox, sent.messageId)).labels.includes("mine"));
    for (const [verb, more] of [["reply", {}], ["replyAll", {}], ["forward", { to: "eve@there.example" }]]) {
        const done = await drive(`inboxes.messages.${verb}`, inbox, odd, { text: "Yes", ...more });
        const written = await drive("inboxes.messages.get", inbox, done.messageId);
        assert.equal(written.inReplyTo === odd, verb !== "forward");
        assert.equal(written.to.includes("eve@there.example"), verb === "forward");
    }
    await drive("inboxes.messages.delete", inbox, sent.messageId);
}

async function useThreads(scope, place, threadId, fileId) {
    const listed = await drive(`${scope}threads.list`, ...place, { subject: ["lamp"], labels: ["received"] });
    assert.ok(listed.threads.map((thread) => thread.threadId).includes(threadId));
    assert.equal((await drive(`${scope}threads.get`, ...place, threadId)).threadId, threadId);
    const found = await drive(`${scope}threads.search`, ...place, { q: "Lamp" });
    assert.ok(found.threads.map((thread) => thread.threadId).includes(threadId));
    const labels = (await drive(`${scope}threads.update`, ...place, threadId, { addLabels: ["seen"] })).labels;
    assert.ok(labels.includes("seen"));
    const link = await drive(`${scope}threads.getAttachment`, ...place, threadId, fileId);
    assert.match(await fetchText(link.downloadUrl), /Hello about Lamp/);
}

async function useDrafts() {
    const made = await drive("inboxes.drafts.create", inbox, { subject: "Hi", attachments: [file] });
    for (const [scope, ...place] of [[""], ["inboxes.", inbox]]) {
        assert.equal((await drive(`${scope}drafts.list`, ...place)).count, 1);
        assert.equal((await drive(`${scope}drafts.get`, ...place, made.draftId)).subject, "Hi");
        const link = await drive(`${scope}drafts.getAttachment`, ...place, made.draftId, made.attachments[0].attachmentId);
        assert.equal(await fetchText(link.downloadUrl), "words");
    }
    const changed = await drive("inboxes.drafts.update", inbox, made.draftId, { to: ["ann@there.example"], text: "Yo" });
    assert.deepEqual(changed.to, ["ann@there.example"]);
    assert.ok((await drive("inboxes.drafts.send", inbox, made.draftId, {})).messageId.startsWith("<"));
    const other = await drive("inboxes.drafts.create", inbox, { subject: "No" });
    await drive("inboxes.drafts.delete", inbox, other.draftId);
    assert.equal((await drive("drafts.list")).count, 0);
}

async function usePods() {
    const inside = "inside@postroom.localhost";
    const message = (await client.inboxes.messages.list(inside)).messages[0];
    await useThreads("pods.", [POD], message.threadId, message.attachments[0].attachmentId);
    const draft = await client.inboxes.drafts.create(inside, { subject: "Hi", attachments: [file] });
    assert.equal((await drive("pods.drafts.list", POD)).count, 1);
    assert.equal((await drive("pods.drafts.get", POD, draft.draftId)).subject, "Hi");
    const link = await drive("pods.drafts.getAttachment", POD, draft.draftId, draft.attachments[0].attachmentId);
    assert.equal(await fetchText(link.downloadUrl), "words");
    const made = await drive("pods.inboxes.create", POD, { username: "another" });
    assert.equal((await drive("pods.inboxes.get", POD, made.inboxId)).podId, POD);
    assert.equal((await drive("pods.inboxes.list", POD)).count, 2);
    assert.equal((await drive("pods.inboxes.search", POD, { q: "anot" })).count, 1);
    assert.equal((await drive("pods.inboxes.update", POD, made.inboxId, { displayName: "A" })).displayName, "A");
    await drive("pods.inboxes.delete", POD, made.inboxId);
    await drive("pods.threads.delete", POD, message.threadId);
    const pod = await drive("pods.create", { name: "Tenant", clientId: "t1" });
    assert.equal((await drive("pods.get", pod.podId)).name, "Tenant");
    assert.ok((await drive("pods.list")).pods.some((each) => each.podId === pod.podId));
    await drive("pods.delete", pod.podId);
}

async function useDomains(scope, ...place) {
    const made = await drive(`${scope}domains.create`, ...place, { domain: "mail.example.com" });
    assert.equal((await drive(`${scope}domains.list`, ...place)).domains[0].domainId, made.domainId);
    assert.equal((await drive(`${scope}domains.get`, ...place, "mail.example.com")).domainId, made.domainId);
    assert.ok((await drive(`${scope}domains.update`, ...place, made.domainId, { feedbackEnabled: true })).feedbackEnabled);
    await drive(`${scope}domains.verify`, ...place, made.domainId);
    const zone = await drive(`${scope}domains.getZoneFile`, ...place, made.domainId);
    assert.match(Buffer.from(await zone.arrayBuffer()).toString(), /IN MX/);
    if (!scope) assert.equal((await drive("domains.getSetupLink", made.domainId)).supported, false);
    await drive(`${scope}domains.delete`, ...place, made.domainId);
}

async function useSettings(scope, ...place) {
    const key = await drive(`${scope}apiKeys.create`, ...place, { name: "one", permissions: { messageRead: true } });
    assert.ok((await drive(`${scope}apiKeys.list`, ...place)).apiKeys.some((each) => each.apiKeyId === key.apiKeyId));
    assert.equal((await drive(`${scope}apiKeys.update`, ...place, key.apiKeyId, { name: "two" })).name, "two");
    if (!scope) assert.equal((await drive("apiKeys.get", key.apiKeyId)).permissions.messageRead, true);
    await drive(`${scope}apiKeys.delete`, ...place, key.apiKeyId);
    const list = [...place, "send", "block"];
    await drive(`${scope}lists.create`, ...list, { entry: "bad.example" });
    assert.equal((await drive(`${scope}lists.list`, ...list)).entries[0].entry, "bad.example");
    assert.equal((await drive(`${scope}lists.get`, ...list, "bad.example")).listType, "block");
    await drive(`${scope}lists.delete`, ...list, "bad.example");
    const asked = { url: "http://127.0.0.1:9/x", eventTypes: ["message.received"], headers: { "X-Own": "7" } };
    const { webhookId, secret } = await drive(`${scope}webhooks.create`, ...place, asked);
    assert.equal((await drive(`${scope}webhooks.get`, ...place, webhookId)).secret, secret);
    assert.equal((await drive(`${scope}webhooks.list`, ...place)).count, 1);
    const changed = await drive(`${scope}webhooks.update`, ...place, webhookId, { eventTypes: ["message.sent"] });
    assert.deepEqual(changed.eventTypes, ["message.sent"]);
    await drive(`${scope}webhooks.updateHeaders`, ...place, webhookId, { headers: { "X-New": "8" } });
    const { headerNames } = await drive(`${scope}webhooks.getHeaders`, ...place, webhookId);
    assert.deepEqual(headerNames, ["X-New", "X-Own"]);
    await drive(`${scope}webhooks.delete`, ...place, webhookId);
    const counted = await drive(`${scope}metrics.queryEvents`, ...place, { eventTypes: ["message.received"] });
    assert.ok(counted["message.received"].some((bucket) => bucket.count >= 1));
    assert.ok((await drive(`${scope}metrics.queryUsage`, ...place))["inbox_count"][0].value >= 1);
}

async function useStream() {
    const socket = await drive("websockets.connect", { apiKey: KEY });
    await socket.waitForOpen();
    const heard = new Promise((resolve) => socket.on("message", resolve));
    socket.sendSubscribe({ type: "subscribe", inboxIds: [inbox] });
    assert.deepEqual((await heard).inboxIds, [inbox]);
    socket.close();
}

await useInboxes();
await useMessages();
await useDrafts();
await useSettings("");
await useSettings("inboxes.", inbox);
await useSettings("pods.", POD);
await usePods();
await useDomains("");
await useDomains("pods.", POD);
await useStream();
assert.equal((await drive("auth.me")).scopeType, "organization");
assert.equal((await drive("organizations.get")).inboxCount, 2);
assert.equal((await drive("fetch", "/v0/auth/me")).status, 200);
const [lamp] = (await client.threads.list({ subject: ["lamp"] })).threads;
await drive("inboxes.threads.delete", inbox, lamp.threadId);
const [rest] = (await client.threads.list({ limit: 1 })).threads;
await drive("threads.delete", rest.threadId);

const all = [...new Set(methodsOf(client))];
const beginnings = Object.keys(WITHOUT_COUNTERPART);
const without = all.filter((name) => beginnings.some((begin) => name.startsWith(begin)));
for (const name of without) {
    const known = beginnings.find((begin) => name === begin) ?? beginnings.find((begin) => name.startsWith(begin));
    const error = await drive(name, ...WITHOUT_COUNTERPART[known]).catch((error) => error);
    assert.equal(error.statusCode, 404, `${name}: ${error}`);
    assert.match(JSON.stringify(error.body), /no counterpart/, name);
}
assert.deepEqual(all.filter((name) => !driven.has(name)), []);
console.log(`${all.length} methods, ${without.length} of them without a counterpart`);

/** The event stream: connects, subscribes, reconnects, and resumes behind the last event it gave out. */

import { Unauthorized } from "./errors.ts";
import { ConnectionFailed, StreamRefused } from "./failures.ts";
import { backoff, rest } from "./transport.ts";
import type { Event } from "./types.ts";

export interface StreamOptions {
  inboxIds?: string[];
  eventTypes?: string[];
  /** Begin behind this event, with what has happened since. */
  lastEventId?: string;
  /** Ends the stream. */
  signal?: AbortSignal;
  /** Told why the stream broke, and for how many seconds it rests. */
  onPause?: (reason: string, seconds: number) => void;
}

const KEY_REVOKED = 4001;
const REMEMBERED_EVENTS = 1024;
const FIRST_PAUSE_SECONDS = 0.5;
const LONGEST_PAUSE_SECONDS = 30;

/** Every event from here on. `proveKey` fails when the key is wrong, which a WebSocket does not tell. */
export async function* stream(
  baseUrl: string,
  apiKey: string,
  options: StreamOptions,
  proveKey: () => Promise<unknown>,
): AsyncGenerator<Event> {
  const seen = new Set<string>();
  let lastEventId = options.lastEventId;
  let failures = 0;
  while (!isOver(options)) {
    let reason = "the server closed the stream";
    try {
      await proveKey();
      for await (const message of messages(baseUrl, apiKey, subscribe(options, lastEventId), options.signal)) {
        failures = 0;
        if (message.type === "error") throw new StreamRefused(String(message.message));
        if (message.type === "subscribed") lastEventId ??= message.last_event_id ?? undefined;
        if (message.type !== undefined || seen.has(message.event_id)) continue;
        remember(seen, message.event_id);
        lastEventId = message.event_id;
        yield message;
      }
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error;
      reason = error.message;
    }
    if (isOver(options)) return;
    failures += 1;
    const pause = backoff(failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS);
    options.onPause?.(reason, pause);
    await rest(pause, options.signal);
  }
}

function isOver(options: StreamOptions): boolean {
  return options.signal?.aborted === true;
}

/** What the server sends: events, and words about the subscription, which have a `type`. */
type Message =
  | (Event & { type?: undefined })
  | { type: string; message?: unknown; last_event_id?: string | null };

function subscribe(options: StreamOptions, lastEventId: string | undefined): string {
  return JSON.stringify({
    type: "subscribe",
    ...(options.inboxIds?.length ? { inbox_ids: options.inboxIds } : {}),
    ...(options.eventTypes?.length ? { event_types: options.eventTypes } : {}),
    ...(lastEventId === undefined ? {} : { last_event_id: lastEventId }),
  });
}

function remember(seen: Set<string>, eventId: string): void {
  seen.add(eventId);
  if (seen.size > REMEMBERED_EVENTS) {
    for (const oldest of seen) {
      seen.delete(oldest);
      return;
    }
  }
}

type Sockets = new (address: string) => WebSocket;

/** The WebSocket of the platform; on Node 20, which has none, that of the package `ws`. */
async function webSocket(): Promise<Sockets> {
  if (typeof WebSocket !== "undefined") return WebSocket;
  const name = "ws"; // in a variable: bundlers for browsers do not look for it
  try {
    return ((await import(name)) as { WebSocket: Sockets }).WebSocket;
  } catch {
    throw new Error("There is no WebSocket here. Use Node 22 or newer, or run: npm install ws");
  }
}

/** The messages of one connection, until it ends. */
async function* messages(
  baseUrl: string,
  apiKey: string,
  first: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Message> {
  const address = `ws${baseUrl.replace(/^http/, "")}/v1/ws?token=${encodeURIComponent(apiKey)}`;
  const socket = new (await webSocket())(address);
  const waiting: Message[] = [];
  let end: Error | "closed" | undefined;
  let wake = (): void => {};
  const close = (): void => socket.close();
  signal?.addEventListener("abort", close, { once: true });
  socket.onerror = () => {}; // its close follows, with the reason
  socket.onopen = () => socket.send(first);
  socket.onmessage = (frame) => {
    waiting.push(JSON.parse(String(frame.data)) as Message);
    wake();
  };
  socket.onclose = (closing) => {
    end = reasonOf(closing);
    wake();
  };
  try {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) yield next;
      else if (end === "closed") return;
      else if (end !== undefined) throw end;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", close);
    socket.close();
  }
}

function reasonOf(closing: CloseEvent): Error | "closed" {
  if (closing.code === KEY_REVOKED) {
    return new Unauthorized("The key was revoked.", { code: "unauthorized", status: 401 });
  }
  if (closing.code === 1000) return "closed";
  return new ConnectionFailed(closing.reason || `closed with ${closing.code}`);
}

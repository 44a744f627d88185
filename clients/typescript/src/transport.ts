/** One request and its answer: what to ask, how long to wait, when to ask again, how to read what came. */

import { BY_CODE } from "./errors.ts";
import { ConnectionFailed, InvalidAnswer, PostroomError } from "./failures.ts";

/** `isRepeatable`: asking twice does no more than once. */
export interface Call {
  method: string;
  path: string;
  query?: object;
  body?: unknown;
  idempotencyKey?: string;
  version?: number | undefined;
  answer: "json" | "bytes" | "nothing";
  isRepeatable: boolean;
  seconds?: number;
}

/** Another call with the same key within 24 hours sends nothing more; a new one is made by default. */
export interface SendOptions {
  idempotencyKey?: string;
}

/** The version that was seen: where the server has another one by now, nothing is done (`DraftChanged`). */
export interface VersionOptions {
  version?: number;
}

/** How long a client tries before it gives up. */
export interface Patience {
  attempts: number;
  longestWaitSeconds: number;
  firstPauseSeconds: number;
}

export const PATIENCE: Patience = { attempts: 4, longestWaitSeconds: 60, firstPauseSeconds: 0.25 };
const PASSING_FAULTS = [500, 502, 503, 504];
const TOO_MANY_REQUESTS = 429;
const NOT_FOUND = 404;
const NO_CONTENT = 204;
const DEFAULT_SECONDS = 30;
const PAGE = 100;

export function path(...segments: string[]): string {
  return "/" + segments.map(encodeURIComponent).join("/");
}

/** Is told why the client waits before another attempt, and for how many seconds. */
export type OnWait = (reason: string, seconds: number) => void;

/** Carries a call out, with as many attempts as patience allows. */
export async function exchange<T>(
  baseUrl: string,
  apiKey: string,
  call: Call,
  patience: Patience,
  onWait?: OnWait,
): Promise<T> {
  const request = build(baseUrl, apiKey, call);
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await attemptOnce(request, call);
    const pause = pauseBeforeNext(call, outcome, attempt, patience);
    if (pause === undefined) return read<T>(call, outcome, attempt);
    announcePause(call, outcome, pause, onWait);
    await rest(pause);
  }
}

/** Without `onWait`, a pause of a second or more is a warning on the console. */
function announcePause(call: Call, outcome: Answer | ConnectionFailed, seconds: number, onWait?: OnWait): void {
  const reason = outcome instanceof ConnectionFailed ? outcome.message : toError(outcome).message;
  if (onWait !== undefined) onWait(reason, seconds);
  else if (seconds >= 1) console.warn(`${call.method} ${call.path}: ${reason} Trying again in ${seconds} s.`);
}

interface Request {
  url: string;
  init: RequestInit;
}

/** One request serves every attempt, so that all of them are equal. */
function build(baseUrl: string, apiKey: string, call: Call): Request {
  const headers: Record<string, string> = { Authorization: `Bearer ${apiKey}` };
  if (call.idempotencyKey !== undefined) headers["Idempotency-Key"] = call.idempotencyKey;
  if (call.version !== undefined) headers["If-Match"] = `"${call.version}"`;
  const init: RequestInit = { method: call.method, headers };
  if (call.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(call.body);
  }
  return { url: baseUrl + call.path + spellQuery(call.query ?? {}), init };
}

function spellQuery(query: object): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null) {
      given.set(name, Array.isArray(value) ? value.join(",") : String(value));
    }
  }
  return given.size > 0 ? `?${given}` : "";
}

interface Answer {
  status: number;
  content: Uint8Array;
  retryAfter: number | undefined;
}

async function attemptOnce(request: Request, call: Call): Promise<Answer | ConnectionFailed> {
  const signal = AbortSignal.timeout(Math.ceil((call.seconds ?? DEFAULT_SECONDS) * 1000));
  try {
    const answer = await fetch(request.url, { ...request.init, signal });
    const content = new Uint8Array(await answer.arrayBuffer());
    return { status: answer.status, content, retryAfter: readRetryAfter(answer.headers.get("retry-after")) };
  } catch (error) {
    return new ConnectionFailed(`No answer from ${request.url}: ${explain(error)}`);
  }
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function readRetryAfter(value: string | null): number | undefined {
  return value !== null && /^\d{1,8}$/.test(value) ? Number(value) : undefined;
}

/** Seconds until another attempt is worth it; undefined when this outcome stands. */
function pauseBeforeNext(
  call: Call,
  outcome: Answer | ConnectionFailed,
  attempt: number,
  patience: Patience,
): number | undefined {
  if (attempt >= patience.attempts || !isWorthRepeating(call, outcome)) return undefined;
  if (!(outcome instanceof ConnectionFailed) && outcome.retryAfter !== undefined) {
    return outcome.retryAfter <= patience.longestWaitSeconds ? outcome.retryAfter : undefined;
  }
  return backoff(attempt, patience.firstPauseSeconds, patience.longestWaitSeconds);
}

function isWorthRepeating(call: Call, outcome: Answer | ConnectionFailed): boolean {
  if (outcome instanceof ConnectionFailed) return call.isRepeatable;
  if (outcome.status === TOO_MANY_REQUESTS) return true;
  return call.isRepeatable && PASSING_FAULTS.includes(outcome.status);
}

/** Doubles with each attempt; the spread keeps many clients from coming back at once. */
export function backoff(attempt: number, first: number, longest: number): number {
  return Math.min(first * 2 ** Math.min(attempt - 1, 30), longest) * (0.5 + Math.random() / 2);
}

export function rest(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function read<T>(call: Call, outcome: Answer | ConnectionFailed, attempt: number): T {
  if (outcome instanceof ConnectionFailed) throw outcome;
  // An attempt whose answer was lost has removed it already.
  const isRemoved = call.method === "DELETE" && attempt > 1 && outcome.status === NOT_FOUND;
  if (!isRemoved && (outcome.status < 200 || outcome.status > 299)) throw toError(outcome);
  if (isRemoved || call.answer === "nothing") return undefined as T;
  if (call.answer === "bytes") return outcome.content as T;
  if (outcome.status === NO_CONTENT) return null as T;
  try {
    return JSON.parse(new TextDecoder().decode(outcome.content)) as T;
  } catch (error) {
    throw new InvalidAnswer(`The server's answer cannot be read: ${explain(error)}`, outcome.status);
  }
}

/** One that is not ours, say from a proxy, still says what it was. */
function toError(answer: Answer): PostroomError {
  try {
    const { error: code, message, ...extras } = JSON.parse(new TextDecoder().decode(answer.content));
    if (typeof code !== "string" || typeof message !== "string") throw new TypeError("no error of ours");
    const kind = BY_CODE[code] ?? PostroomError;
    return new kind(message, { code, status: answer.status, extras, retryAfter: answer.retryAfter });
  } catch {
    const told = `The server answered ${answer.status}, but not like Postroom.`;
    return new InvalidAnswer(told, answer.status);
  }
}

interface AnyPage<T> {
  data: T[];
  next?: string | null;
  truncated?: boolean;
}

interface AnyQuery {
  limit?: number;
  offset?: number;
  cursor?: string;
  after?: string;
}

/** The items of all pages; each page is asked for when its first item is wanted. */
export async function* pages<T, Q extends object>(
  ask: (query: Q) => Promise<AnyPage<T>>,
  query: Q,
): AsyncGenerator<T> {
  let wanted: (Q & AnyQuery) | undefined = { limit: PAGE, ...query };
  while (wanted !== undefined) {
    const page: AnyPage<T> = await ask(wanted);
    yield* page.data;
    wanted = behind(page, wanted);
  }
}

/** The query of the page behind; undefined when there is none. */
function behind<Q extends AnyQuery>(page: AnyPage<unknown>, query: Q): Q | undefined {
  if (page.data.length === 0) return undefined;
  if (page.next !== undefined) {
    if (page.next === null) return undefined;
    return "q" in query ? { ...query, cursor: page.next } : { ...query, after: page.next };
  }
  // The server gives no more than a whole page, and less where large items would make it too large.
  const isLast = page.data.length < Math.min(query.limit ?? PAGE, PAGE) && page.truncated !== true;
  return isLast ? undefined : { ...query, offset: (query.offset ?? 0) + page.data.length };
}

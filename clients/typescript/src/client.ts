/** The client: a method for each operation, and what takes several of them. */

import { Unauthorized, NotFound } from "./errors.ts";
import { Operations } from "./operations.ts";
import { stream } from "./stream.ts";
import type { StreamOptions } from "./stream.ts";
import { exchange, PATIENCE } from "./transport.ts";
import type { Call, OnWait, Patience, SendOptions } from "./transport.ts";
import type { Event, Message, SendBody, Sent, SentFile } from "./types.ts";

export interface ClientOptions {
  apiKey: string;
  /** The server; http://127.0.0.1:8025 by default. */
  baseUrl?: string;
  patience?: Partial<Patience>;
  /** Without it, the console has a warning before a wait of a second or more. */
  onWait?: OnWait;
}

/** The fields of a send that an answer does not set itself. */
export type AnswerFields = Omit<SendBody, "body" | "to" | "subject" | "threadId" | "replyAll" | "forwardOf">;

const PAGE = 100;

/** Talks to a Postroom server. */
export class Client extends Operations {
  readonly baseUrl: string;
  readonly #apiKey: string;
  readonly #patience: Patience;
  readonly #onWait: OnWait | undefined;

  constructor(options: ClientOptions) {
    super();
    if (!/^[!-~]+$/.test(options.apiKey)) {
      throw new Unauthorized("The API key has invalid characters. Copy it again.", {
        code: "unauthorized",
        status: 401,
      });
    }
    this.baseUrl = (options.baseUrl ?? "http://127.0.0.1:8025").replace(/\/+$/, "");
    this.#apiKey = options.apiKey;
    this.#patience = { ...PATIENCE, ...options.patience };
    this.#onWait = options.onWait;
  }

  protected run<T>(call: Call): Promise<T> {
    return exchange<T>(this.baseUrl, this.#apiKey, call, this.#patience, this.#onWait);
  }

  /** Events as they happen, for ever; after a broken connection it goes on behind the last one. */
  stream(options: StreamOptions = {}): AsyncGenerator<Event> {
    return stream(this.baseUrl, this.#apiKey, options, () => this.me());
  }

  /** Answer the last mail that came in this thread; the thread is then read. */
  async reply(
    threadId: string,
    body: string,
    fields: AnswerFields = {},
    options: SendOptions = {},
  ): Promise<Sent> {
    const page = await this.listThreadMessages(threadId, { order: "desc", limit: PAGE });
    const to = replyRecipients(page.data);
    return this.send(page.inboxId, { ...fields, to, body, threadId }, options);
  }

  /** Answer everybody whom the last mail that came in this thread names. */
  async replyAll(
    threadId: string,
    body: string,
    fields: AnswerFields = {},
    options: SendOptions = {},
  ): Promise<Sent> {
    const thread = await this.getThread(threadId);
    return this.send(thread.inboxId, { ...fields, body, threadId, replyAll: true }, options);
  }

  /** Pass a mail on, with its text and its files. */
  async forward(
    messageId: string,
    to: string | string[],
    body: string,
    fields: AnswerFields = {},
    options: SendOptions = {},
  ): Promise<Sent> {
    const message = await this.getMessage(messageId);
    return this.send(message.inboxId, { ...fields, to, body, forwardOf: messageId }, options);
  }

  /**
   * The message as soon as it is decided: approved, rejected, cancelled, expired or sent. If nobody decides in
   * time, it is returned as it is then, with `hold.state` "held".
   */
  async waitForDecision(messageId: string, timeoutSeconds = 3600): Promise<Message> {
    const ends = Date.now() + timeoutSeconds * 1000;
    let message = await this.getMessage(messageId);
    while (awaitsDecision(message)) {
      const left = (ends - Date.now()) / 1000;
      if (left <= 0) break;
      message = await this.getMessage(messageId, { wait: Math.min(left, 60) });
    }
    return message;
  }
}

function awaitsDecision(message: Message): boolean {
  const state = message.hold?.state;
  return message.status === "pending" && (state === undefined || state === "held" || state === "scheduled");
}

/** Of the last mail that came: its sender, or, when this inbox was only copied, whom it was sent to. */
export function replyRecipients(newestFirst: Message[]): string {
  const newest = newestFirst[0];
  if (newest === undefined) {
    throw new NotFound("The thread has no message to answer.", { code: "not_found", status: 404 });
  }
  const came = newestFirst.find((message) => message.direction === "inbound");
  if (came === undefined) return newest.headerTo;
  return came.deliveryRole === "cc" ? came.headerTo : came.fromAddr;
}

/** A file to attach. */
export function attachment(
  filename: string,
  content: Uint8Array,
  contentType = "application/octet-stream",
): SentFile {
  let binary = "";
  for (const byte of content) binary += String.fromCharCode(byte);
  return { filename, contentType, data: btoa(binary) };
}

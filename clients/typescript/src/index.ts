/** The client of Postroom: `Client`, `verifySignature`, and one error class per error code. */

export { attachment, Client, replyRecipients } from "./client.ts";
export type { AnswerFields, ClientOptions } from "./client.ts";
export * from "./errors.ts";
export { ConnectionFailed, InvalidAnswer, PostroomError, StreamRefused } from "./failures.ts";
export type { StreamOptions } from "./stream.ts";
export type { OnWait, Patience, SendOptions, VersionOptions } from "./transport.ts";
export type * from "./types.ts";
export { verifySignature } from "./webhook.ts";
export type { SignedRequest } from "./webhook.ts";

/** The error that all others of this client are, and those that no server sends. */

export interface ErrorDetails {
  code?: string;
  status?: number;
  /** What else the answer named, such as `field` or `recipient`. */
  extras?: Record<string, unknown>;
  /** Seconds until another attempt may succeed. */
  retryAfter?: number | undefined;
}

/** `code` is for programs, `message` for people. */
export class PostroomError extends Error {
  readonly code: string;
  readonly status: number;
  readonly extras: Record<string, unknown>;
  readonly retryAfter: number | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = new.target.name;
    this.code = details.code ?? "error";
    this.status = details.status ?? 0;
    this.extras = details.extras ?? {};
    this.retryAfter = details.retryAfter;
  }
}

/** No answer came: the server is away, or the network between. */
export class ConnectionFailed extends PostroomError {
  constructor(message: string) {
    super(message, { code: "connection_failed" });
  }
}

/** What came back is not this interface's. */
export class InvalidAnswer extends PostroomError {
  constructor(message: string, status: number) {
    super(message, { code: "invalid_answer", status });
  }
}

/** The stream answered a subscription with an error. */
export class StreamRefused extends PostroomError {
  constructor(message: string) {
    super(message, { code: "stream_refused" });
  }
}

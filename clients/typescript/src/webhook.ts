/** The signature of webhook requests: lower-case hex HMAC-SHA256 of `<timestamp>.<body>`. */

const encoder = new TextEncoder();

export interface SignedRequest {
  /** The body as it came, before any parsing. */
  body: string | Uint8Array;
  /** The header X-Timestamp. */
  timestamp: string;
  /** The header X-Signature. */
  signature: string;
  secret: string;
  /** How old a request may be; 300 by default. */
  toleranceSeconds?: number;
  /** The time that counts as now, in Unix seconds. */
  now?: number;
}

/** True when the signature fits the raw body and the timestamp is close to now. */
export async function verifySignature(request: SignedRequest): Promise<boolean> {
  if (!/^[0-9]{1,15}$/.test(request.timestamp)) return false;
  const now = request.now ?? Date.now() / 1000;
  if (Math.abs(now - Number(request.timestamp)) > (request.toleranceSeconds ?? 300)) return false;
  const given = fromHex(request.signature);
  if (given === undefined) return false;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(request.secret), algorithm, false, ["verify"]);
  return crypto.subtle.verify("HMAC", key, given, signed(request.timestamp, request.body));
}

function signed(timestamp: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(`${timestamp}.`);
  const raw = typeof body === "string" ? encoder.encode(body) : body;
  const whole = new Uint8Array(head.length + raw.length);
  whole.set(head);
  whole.set(raw, head.length);
  return whole;
}

function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[0-9a-f]{64}$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// An Email Worker for Cloudflare Email Routing that hands each mail to Postroom.
//
// 1. postroom connections create http --provider cloudflare [--signing-key SECRET]   gives the URL, and each post is signed
// 2. Workers & Pages, Create, paste this file; Settings, Variables: POSTROOM_URL and, if used, POSTROOM_SIGNING_KEY
// 3. Email Routing, Routing rules, Catch-all address: Send to a Worker
//
// A mail that Postroom does not know is rejected (the sender gets a bounce). While Postroom cannot be reached the worker
// fails, and Cloudflare tells the sending server to try again later: nothing is lost.

export default {
  async email(message, env) {
    const body = await new Response(message.raw).arrayBuffer();
    const headers = {
      "Content-Type": "message/rfc822",
      "X-Envelope-From": message.from,
      "X-Envelope-To": message.to,
    };
    if (env.POSTROOM_SIGNING_KEY) {
      headers["X-Signature"] = await sign(env.POSTROOM_SIGNING_KEY, message.from, message.to, body);
    }
    const answer = await fetch(env.POSTROOM_URL, { method: "POST", headers, body });
    if (answer.status === 422) {
      message.setReject("No such mailbox here");
    } else if (answer.status === 413) {
      message.setReject("The mail is too large");
    } else if (!answer.ok) {
      throw new Error(`Postroom answered ${answer.status}: ${await answer.text()}`);
    }
  },
};

async function sign(secret, from, to, body) {
  const seconds = Math.floor(Date.now() / 1000);
  const text = new TextEncoder();
  const head = text.encode(`${seconds}.${from}.${to}.`);
  const signed = new Uint8Array(head.length + body.byteLength);
  signed.set(head);
  signed.set(new Uint8Array(body), head.length);
  const key = await crypto.subtle.importKey("raw", text.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  const hex = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `t=${seconds},v1=${hex}`;
}

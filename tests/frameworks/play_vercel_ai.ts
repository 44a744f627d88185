// Runs the example twice with a scripted model: the model reads the thread, answers with what it was shown, and ends.
import { argv } from "node:process";

import { Client } from "@postroom/client";
import { MockLanguageModelV3 } from "ai/test";

import { answerAll, build } from "./with_vercel_ai.ts";

const [baseUrl, apiKey, inboxId] = argv.slice(2);
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

function nextStep(prompt, results) {
  const [threadId] = /thr_\w+/.exec(prompt);
  if (!results.length) return ["readThread", { threadId }];
  if (results.length === 1) {
    const [, shown] = /\[untrusted .*\]\n([^]*?)\n\[end/.exec(results[0]);
    return ["replyToThread", { threadId, body: `You wrote: ${shown.trim().split("\n").at(-1)}` }];
  }
  return results.at(-1);
}

const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const parts = prompt.filter(({ role }) => role !== "system").flatMap(({ content }) => content);
    const results = parts.filter(({ type }) => type === "tool-result").map(({ output }) => output.value);
    const step = nextStep(parts.find(({ type }) => type === "text").text, results);
    const isLast = typeof step === "string";
    const content = isLast
      ? { type: "text", text: step }
      : { type: "tool-call", toolCallId: `c${results.length}`, toolName: step[0], input: JSON.stringify(step[1]) };
    return { content: [content], finishReason: { unified: isLast ? "stop" : "tool-calls" }, usage, warnings: [] };
  },
});

const client = new Client({ apiKey, baseUrl });
const agent = build(client, model);
console.log(await answerAll(client, inboxId, agent), await answerAll(client, inboxId, agent));

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { Instance } from "../src/instance.js";
import { ERROR_CODES, type PushMessage } from "../src/instance-types.js";
import { LIMITS } from "./support/bench.js";

interface Seen {
  method: string | undefined;
  url: string | undefined;
  authorization: string | undefined;
  body: unknown;
}
interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
  text?: string;
}

let server: Server;
let url: string;
let seen: Seen[] = [];
/** What the relay answers; undefined: never. */
let answer: Answer | undefined;

before(async () => {
  server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const { method, headers } = request;
      seen.push({ method, url: request.url, authorization: headers.authorization, body });
      if (answer !== undefined) {
        response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
        response.end(answer.text ?? (answer.body === undefined ? "" : JSON.stringify(answer.body)));
      }
    });
  });
  // On a slow machine the server would give an idle connection up just as the next request is written to it.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) {
    text += String(chunk);
  }
  return text === "" ? undefined : JSON.parse(text);
}

function told(next: Answer | undefined): Instance {
  seen = [];
  answer = next;
  return new Instance(`${url}/`, { instanceKey: "key.of.instance" });
}

const MESSAGE: PushMessage = { deviceToken: "t", platform: "ios", encryptedPayload: "p" };
const SESSION = { sessionId: "s", expiresAt: "2030-01-01T00:00:00Z", url: "wss://r/v1/signal", limits: LIMITS };

test("enrolling needs no key, and carries the invite in the header alone", async () => {
  told({ body: { instanceId: "i", instanceKey: "k" } });
  const result = await new Instance(url).enroll({ name: "home", invite: "invitation" });
  assert.deepEqual(result, { ok: true, value: { instanceId: "i", instanceKey: "k" } });
  const sent = { method: "POST", url: "/v1/enroll", authorization: "Bearer invitation", body: { name: "home" } };
  assert.deepEqual(seen, [sent]);
});

test("a push carries the key in the header, and its three outcomes are typed", async () => {
  const outcomes = [
    { result: "sent", messageId: "m" },
    { result: "sent" },
    { result: "invalid_token", reason: "unregistered", invalidSince: "2030-01-01T00:00:00Z" },
    { result: "failed", reason: "provider_throttled", retryable: true, retryAfterSeconds: 7 },
    { result: "failed", reason: "a later reason", retryable: false },
  ];
  for (const body of outcomes) {
    assert.deepEqual(await told({ body }).push(MESSAGE), { ok: true, value: body });
    assert.deepEqual(seen[0], {
      method: "POST",
      url: "/v1/push",
      authorization: "Bearer key.of.instance",
      body: MESSAGE,
    });
  }
});

test("an invalid_token without its time is not believed: a device would be deleted on it", async () => {
  const result = await told({ body: { result: "invalid_token", reason: "unregistered" } }).push(MESSAGE);
  assert.equal(!result.ok && result.error, "unexpected_answer");
});

for (const code of ERROR_CODES) {
  test(`the error ${code} is given as it is, with Retry-After and request id`, async () => {
    const headers = { "retry-after": "17", "x-request-id": "r-1" };
    const result = await told({ status: 429, headers, body: { error: code, message: "Why." } }).push(MESSAGE);
    const expected = { ok: false, error: code, message: "Why.", status: 429, retryAfterSeconds: 17, requestId: "r-1" };
    assert.deepEqual(result, expected);
  });
}

for (const [what, next] of [
  ["a proxy's page", { status: 502, text: "<html>" }],
  ["an unknown code", { status: 400, body: { error: "odd", message: "m" } }],
  ["no JSON", { text: "x" }],
  ["an array", { body: [] }],
  ["an unknown outcome", { body: { result: "maybe" } }],
  ["nothing at all", {}],
] as [string, Answer][]) {
  test(`${what} is an unexpected answer`, async () => {
    const result = await told(next).push(MESSAGE);
    assert.ok(!result.ok && result.error === "unexpected_answer" && result.status === (next.status ?? 200));
  });
}

test("a redirect is not followed: the key is for this relay alone", async () => {
  const result = await told({ status: 307, headers: { location: `${url}/elsewhere` } }).push(MESSAGE);
  assert.equal(!result.ok && result.error, "unreachable");
  assert.equal(seen.length, 1);
});

test("no answer in time and no relay at all are told apart, and quote nothing secret", async () => {
  told(undefined);
  const slow = await new Instance(url, { instanceKey: "hunter2", timeoutMs: 50 }).push(MESSAGE);
  assert.equal(!slow.ok && slow.error, "timed_out");
  const gone = await new Instance("http://127.0.0.1:1", { instanceKey: "hunter2" }).push(MESSAGE);
  assert.equal(!gone.ok && gone.error, "unreachable");
  assert.doesNotMatch(JSON.stringify([slow, gone]), /hunter2/);
});

test("a key that can't be in a header, or none, is the caller's fault and not quoted", async () => {
  for (const options of [{ instanceKey: "hunter2\n" }, {}]) {
    await assert.rejects(
      new Instance(url, options).push(MESSAGE),
      (error) => error instanceof TypeError && !error.message.includes("hunter2"),
    );
  }
});

test("a batch gives a result for each message, in order", async () => {
  const results = [{ result: "sent" }, { error: "rate_limited", message: "Slow down.", retryAfterSeconds: 3 }];
  const result = await told({ body: { results } }).pushBatch([MESSAGE, MESSAGE]);
  assert.deepEqual(result, {
    ok: true,
    value: [
      { ok: true, value: { result: "sent" } },
      { ok: false, error: "rate_limited", message: "Slow down.", retryAfterSeconds: 3 },
    ],
  });
  assert.deepEqual(seen[0]?.body, { messages: [MESSAGE, MESSAGE] });
  for (const wrong of [[results[0]], [results[0], {}], "x"]) {
    const unexpected = await told({ body: { results: wrong } }).pushBatch([MESSAGE, MESSAGE]);
    assert.equal(!unexpected.ok && unexpected.error, "unexpected_answer");
  }
});

test("a session has both tickets, a rendezvous one's own", async () => {
  const made = await told({ status: 201, body: { ...SESSION, tickets: { a: "A", b: "B" } } }).createSession({
    turn: true,
  });
  assert.deepEqual(made, { ok: true, value: { ...SESSION, tickets: { a: "A", b: "B" } } });
  assert.deepEqual(seen[0]?.body, { turn: true });
  const half = await told({ status: 201, body: { ...SESSION, tickets: { a: "A" } } }).createSession();
  assert.equal(!half.ok && half.error, "unexpected_answer");
  const first = await told({ status: 201, body: { ...SESSION, tickets: { a: "A" } } }).meet("r".repeat(43));
  assert.deepEqual(first, { ok: true, value: { ...SESSION, slot: "a", ticket: "A", created: true } });
  const second = await told({ body: { ...SESSION, tickets: { b: "B" } } }).meet("r".repeat(43));
  assert.deepEqual(second, { ok: true, value: { ...SESSION, slot: "b", ticket: "B", created: false } });
});

test("a session is looked at and deleted by its id, which can't reach another path", async () => {
  const slot = { state: "online", gen: 1, queued: 0 };
  const state = { sessionId: "s", expiresAt: "2030-01-01T00:00:00Z", slots: { a: slot, b: slot } };
  assert.deepEqual(await told({ body: state }).session("s"), { ok: true, value: state });
  assert.deepEqual(await told({ status: 204 }).deleteSession("../enrollment"), { ok: true, value: undefined });
  assert.deepEqual(seen[0]?.url, "/v1/signal/sessions/..%2Fenrollment");
});

test("capabilities need no key; rotating and withdrawing do", async () => {
  const platforms = { ios: true, android: false, macos: true, windows: false };
  const capabilities = { platforms, signaling: { subprotocols: [] }, limits: {}, version: "1" };
  const asked = await told({ body: capabilities }).capabilities();
  assert.deepEqual([asked, seen[0]?.authorization], [{ ok: true, value: capabilities }, undefined]);
  const rotation = { instanceId: "i", instanceKey: "k2", previousValidUntil: "2030-01-01T00:00:00Z" };
  assert.deepEqual(await told({ body: rotation }).rotateKey({ graceSeconds: 0 }), { ok: true, value: rotation });
  assert.deepEqual(seen[0]?.body, { graceSeconds: 0 });
  assert.deepEqual(await told({ status: 204 }).withdraw(), { ok: true, value: undefined });
  assert.equal(seen[0].authorization, "Bearer key.of.instance");
});

/** The README's examples, run as they are, with the module as it is shipped. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mock, test } from "node:test";
import { Instance, exportDevicePublicKey, generateDeviceKey, open, toBase64Url } from "@sovereignfs/relay-client";
import { call } from "../examples/instance.js";
import { chat, type Invitation } from "../examples/page.js";
import { LIMITS } from "./support/bench.js";
import { FakePeerConnection } from "./support/fake-peer-connection.js";
import { SECRET, World } from "./support/world.js";

class Browser extends FakePeerConnection {
  createDataChannel(label: string): { label: string } {
    this.want();
    return { label };
  }

  getStats(): Promise<Map<string, object>> {
    return Promise.resolve(new Map<string, object>());
  }
}

/** The example's sessions live in real time. */
async function until(condition: () => boolean, what: string): Promise<void> {
  for (const end = performance.now() + 20_000; !condition(); ) {
    assert.ok(performance.now() < end, `never came: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("two pages that run the example are connected, and say so", async () => {
  const world = new World();
  const globals = { RTCPeerConnection: Browser, WebSocket: world.platform().webSocket() };
  const before = new Map(Object.keys(globals).map((name) => [name, Reflect.get(globalThis, name) as unknown]));
  Object.assign(globalThis, globals);
  const log = mock.method(console, "log", () => undefined);
  const warn = mock.method(console, "warn", () => undefined);
  const said = (words: string): number => log.mock.calls.filter((line) => line.arguments.join(" ") === words).length;
  try {
    const channels: RTCDataChannel[] = [];
    const sessions = ["a", "b"].map((slot) => {
      const url = "wss://relay.test/v1/signal";
      const invitation: Invitation = { url, sessionId: "session", ticket: `ticket-${slot}`, secret: toBase64Url(SECRET) };
      return chat(invitation, (channel) => channels.push(channel));
    });
    await until(() => said("connected direct") === 2, "both connected");
    assert.deepEqual([channels.length, said("the peer is online") > 0, warn.mock.callCount()], [2, true, 0]);
    for (const session of sessions) {
      session.close("direct");
    }
    await until(() => said("signaling is over: left") === 2, "both ends");
  } finally {
    Object.assign(globalThis, Object.fromEntries(before));
    mock.restoreAll();
  }
});

test("the invitation in the example's link is checked", () => {
  const invitation: Invitation = { url: "wss://relay.test/v1/signal", sessionId: "s", ticket: "t", secret: "not base64url!" };
  assert.throws(() => chat(invitation, () => undefined), TypeError);
});

test("an instance that runs the example makes a session and pushes its other half, for the device alone", async () => {
  const bodies = new Map<string, Record<string, unknown>>();
  const made = { sessionId: "s", expiresAt: "2030-01-01T00:00:00Z", url: "wss://r/v1/signal", limits: LIMITS };
  const answers = new Map<string, unknown>([
    ["/v1/signal/sessions", { ...made, tickets: { a: "ticket a", b: "ticket b" } }],
    ["/v1/push", { result: "sent", messageId: "m" }],
  ]);
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      bodies.set(request.url!, JSON.parse(text) as Record<string, unknown>);
      response.end(JSON.stringify(answers.get(request.url!)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const relay = new Instance(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { instanceKey: "key" });
    const key = await generateDeviceKey();
    const device = { token: "token", publicKey: await exportDevicePublicKey(key.publicKey), registeredAt: new Date() };
    const ours = await call(relay, device);
    assert.deepEqual([ours?.ticket, ours?.sessionId], ["ticket a", "s"]);
    const opened = await open(bodies.get("/v1/push")!["encryptedPayload"] as string, key.privateKey);
    const expected = { url: made.url, sessionId: "s", ticket: "ticket b", secret: ours!.secret };
    assert.deepEqual(JSON.parse(opened), expected);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

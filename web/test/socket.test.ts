/** Over real sockets: the `ws` package at both ends, the double's session behind it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { WebSocketConstructor } from "../src/platform.js";
import { Session } from "../src/session.js";
import { RelayDouble } from "./support/relay-double.js";
import { SECRET } from "./support/world.js";

const DEADLINE_MS = 20_000;

async function serve(subprotocol: string | false): Promise<{ relay: RelayDouble; server: WebSocketServer; url: string }> {
  const relay = new RelayDouble();
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: () => subprotocol });
  server.on("connection", (socket) => {
    const line = relay.connect({
      send: (text) => {
        socket.send(text);
      },
      close: (code) => {
        if (code === 1006) {
          socket.terminate();
        } else {
          socket.close(code);
        }
      },
    });
    socket.on("message", (data: Buffer) => {
      line.message(data.toString("utf8"));
    });
    socket.on("close", () => {
      line.closed();
    });
  });
  await once(server, "listening");
  return { relay, server, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/signal` };
}

function session(url: string, slot: "a" | "b"): Session {
  return new Session({ url, sessionId: "session", ticket: `ticket-${slot}`, secret: SECRET, webSocket: WebSocket });
}

test("messages cross real sockets that are cut, once and in order", { timeout: DEADLINE_MS }, async () => {
  const { relay, server, url } = await serve("sovereign.signal.v1");
  const [a, b] = [session(url, "a"), session(url, "b")];
  const heard: unknown[] = [];
  const all = new Promise<void>((resolve) => {
    b.on("message", ({ value }) => {
      if (heard.push(value) === 30) {
        resolve();
      }
    });
  });
  let count = 0;
  relay.cutBeforeAck = () => (count += 1) % 10 === 0;
  a.start();
  b.start();
  for (let at = 0; at < 30; at += 1) {
    await a.send({ kind: "note", negotiation: "", value: at });
  }
  await all;
  assert.deepEqual(
    heard,
    Array.from({ length: 30 }, (_, at) => at),
  );
  const left = b.next("closed");
  relay.end();
  assert.deepEqual(await left, { type: "closed", reason: "over", code: 4410 });
  a.close();
  server.close();
});

test("a server that doesn't speak our subprotocol gets no ticket", { timeout: DEADLINE_MS }, async () => {
  const { relay, server, url } = await serve(false);
  const lost = session(url, "a");
  const waiting = new Promise<void>((resolve) => {
    lost.on("state", ({ state }) => {
      if (state === "waiting" || state === "closed") {
        resolve();
      }
    });
  });
  lost.start();
  await waiting;
  lost.close();
  assert.deepEqual(relay.seen, []);
  server.close();
});

test("a Node without WebSocket and without the option is told so at once", () => {
  const platform = {
    webSocket: () => {
      throw new TypeError("no WebSocket here: pass one as the option webSocket");
    },
  };
  const options = { url: "ws://127.0.0.1:1", sessionId: "s", ticket: "t", secret: "unsealed" as const };
  assert.throws(() => new Session({ ...options, platform }), /^TypeError: no WebSocket here/);
  assert.equal(new Session({ ...options, platform, webSocket: WebSocket }).state, "new");
});

test("what is thrown without WebSocket is what the platform of this Node throws", { skip: "WebSocket" in globalThis }, () => {
  const options = { url: "ws://127.0.0.1:1", sessionId: "s", ticket: "t", secret: "unsealed" as const };
  assert.throws(() => new Session(options), /^TypeError: no WebSocket here: pass one as the option webSocket$/);
});

test("a WebSocket that may not dial counts as refused", async () => {
  const webSocket = function forbidden() {
    throw new DOMException("not allowed", "SecurityError");
  } as unknown as WebSocketConstructor;
  const lost = new Session({ url: "ws://127.0.0.1:1", sessionId: "s", ticket: "t", secret: "unsealed", webSocket });
  lost.start();
  assert.equal(lost.state, "connecting");
  assert.equal((await lost.next("state")).state, "waiting");
  lost.close();
});

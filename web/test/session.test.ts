import assert from "node:assert/strict";
import { test } from "node:test";
import { Session } from "../src/session.js";
import { SendError } from "../src/session-types.js";
import { SECRET, World, type Page } from "./support/world.js";

test("two pages exchange sealed messages in order, and the relay sees none of them", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  for (let at = 0; at < 50; at += 1) {
    await Promise.all([a.say(`from a ${at}`), b.say(`from b ${at}`)]);
  }
  await world.until(() => a.messages.length === 50 && b.messages.length === 50, "all messages");
  assert.deepEqual(
    b.values,
    Array.from({ length: 50 }, (_, at) => `from a ${at}`),
  );
  assert.deepEqual(
    a.values,
    Array.from({ length: 50 }, (_, at) => `from b ${at}`),
  );
  assert.deepEqual([...a.violations, ...b.violations], []);
  assert.ok(!world.relay.seen.some((text) => text.includes("from ") || text.includes("note")));
});

test("messages to a peer that comes a minute later wait for it", async () => {
  const world = new World();
  const a = world.page("a");
  for (let at = 0; at < 21; at += 1) {
    await a.say(at);
  }
  await world.pass(60_000);
  const b = world.page("b");
  await world.until(() => b.messages.length === 21, "the messages that waited");
  assert.deepEqual(
    b.values,
    Array.from({ length: 21 }, (_, at) => at),
  );
  assert.equal(a.session.pending, 0);
});

test("connections cut at random between storing and acknowledging lose and double nothing", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  let count = 0;
  world.relay.cutBeforeAck = () => (count += 1) % 7 === 0;
  for (let at = 0; at < 100; at += 1) {
    await Promise.all([a.say(at), b.say(at)]);
  }
  await world.until(() => a.messages.length >= 100 && b.messages.length >= 100, "all messages");
  await world.until(() => a.session.pending + b.session.pending === 0, "all acknowledgements");
  const all = Array.from({ length: 100 }, (_, at) => at);
  assert.deepEqual([a.values, b.values], [all, all]);
  assert.deepEqual([...a.violations, ...b.violations], []);
  assert.ok(world.dials > 20);
});

test("a refused message and those behind it arrive in order after the delay", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  await world.until(() => a.session.state === "live", "a connection");
  world.relay.refuseNext = 3;
  await Promise.all([0, 1, 2, 3, 4, 5].map((at) => a.say(at)));
  await world.until(() => b.messages.length === 6, "all messages");
  assert.deepEqual(b.values, [0, 1, 2, 3, 4, 5]);
  assert.equal(world.dials, 2);
});

test("roles are opposite and stay so over 100 reconnects", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  for (let time = 1; time <= 100; time += 1) {
    await world.until(() => a.session.state === "live" && b.session.state === "live", "both live");
    world.relay.cut(time % 2 === 0 ? "a" : "b");
    await world.turn();
  }
  const roles = (page: Page): Set<string> =>
    new Set(page.log.filter((line) => /welcome|resumed/.test(line)).map((line) => line.split(" ")[1]!));
  assert.deepEqual([roles(a), roles(b)], [new Set(["impolite"]), new Set(["polite"])]);
});

test("a peer's reload is told before its messages, and what waited unacknowledged goes to the new page", async () => {
  const world = new World();
  const [a, first] = [world.page("a"), world.page("b")];
  await first.say("first");
  await world.until(() => a.messages.length === 1, "a message of the first page");
  world.blackhole = true; // The first page is gone without a word.
  await world.pass(1_000);
  world.blackhole = false;
  world.relay.cut("b");
  await a.say("for whoever is there");
  const second = world.page("b");
  await second.say("second");
  await world.until(() => a.messages.length === 2 && second.messages.length === 1, "messages both ways");
  const [restart, message] = [a.log.indexOf("restart 2"), a.log.indexOf('message note "second"')];
  assert.ok(restart > 0 && restart < message);
  assert.deepEqual(
    a.messages.map(({ load }) => load),
    [1, 2],
  );
  assert.deepEqual(second.values, ["for whoever is there"]);
  assert.ok(second.log.indexOf('message note "for whoever is there"') > 0);
  assert.deepEqual([...a.violations, ...second.violations], []);
  await world.until(() => first.log.includes("closed replaced"), "the end of the page that is gone");
});

test("messages wait unacknowledged at the relay until somebody listens", async () => {
  const world = new World();
  const a = world.page("a");
  const quiet = new Session({
    url: "wss://relay.test",
    sessionId: "session",
    ticket: "ticket-b",
    secret: SECRET,
    platform: world.platform(),
  }).start();
  await a.say("patience");
  await world.pass(5_000);
  assert.equal(world.relay.slots.b.mailbox.length, 1);
  const heard: unknown[] = [];
  quiet.on("message", ({ value }) => heard.push(value));
  await world.until(() => world.relay.slots.b.mailbox.length === 0, "the acknowledgement");
  assert.deepEqual(heard, ["patience"]);
});

test("a blackholed network is noticed by an unanswered ping, and the session resumes", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  await world.until(() => a.session.state === "live" && b.session.state === "live", "both live");
  world.blackhole = true;
  await a.say("through the dark");
  await world.until(() => a.session.state !== "live", "the end of waiting");
  world.blackhole = false;
  await world.until(() => b.messages.length === 1, "the message");
  assert.deepEqual(b.values, ["through the dark"]);
});

test("waking up in a blackholed network takes 4 s, not 30", async () => {
  const world = new World();
  const a = world.page("a");
  await world.until(() => a.session.state === "live", "live");
  world.blackhole = true;
  world.wake();
  const since = world.now;
  await world.until(() => a.session.state !== "live", "the end of waiting");
  assert.ok(world.now - since <= 4_200);
});

test("what came before the end is handed on before the end is told", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  await world.until(() => a.session.state === "live" && b.session.state === "live", "both live");
  await a.say("last words");
  await world.until(() => world.relay.slots.b.lastSeq === 1, "the message at the relay");
  world.relay.end();
  await world.until(() => b.log.includes("closed over"), "the end");
  assert.ok(b.log.indexOf('message note "last words"') < b.log.indexOf("closed over"));
  await world.until(() => a.log.includes("closed over"), "the other end");
  assert.equal(world.timers, 0);
});

test("closing tells the peer, rejects what is sent after, and leaves no timer", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  await world.until(() => a.session.peer === "online" && b.session.state === "live", "both live");
  a.session.close("direct");
  await assert.rejects(a.say("late"), { code: "closed" });
  await world.until(() => b.session.peer === "left", "the peer's leaving");
  assert.deepEqual(world.relay.slots.a.heard.at(-1), { t: "bye", mood: "direct" });
  assert.equal(a.log.at(-1), "closed left");
  b.session.close();
  assert.equal(world.timers, 0);
});

test("what was sent before the first welcome is rejected when there never is one", async () => {
  const world = new World();
  world.down = true;
  const a = world.page("a");
  const sent = assert.rejects(a.say("x"), { code: "closed" });
  await world.until(() => a.log.includes("closed unreachable"), "giving up");
  await sent;
});

test("a loop of awaited sends goes as fast as the relay and is never refused", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  const all = Array.from({ length: 700 }, (_, at) => at);
  const loop = (async () => {
    for (const at of all) {
      await a.say(at);
      assert.ok(a.session.pending <= 256);
    }
  })();
  await world.until(() => b.messages.length === all.length, "all messages");
  await loop;
  assert.deepEqual(b.values, all);
  assert.deepEqual([...a.violations, ...b.violations], []);
});

test("a send that waits for room goes on when there is some, and ends with the session when there is none", async () => {
  const world = new World();
  const a = world.page("a");
  await world.until(() => a.session.state === "live", "live");
  world.down = true;
  world.relay.cut("a");
  await world.until(() => a.session.state !== "live", "the cut");
  for (let at = 0; at < 256; at += 1) {
    await a.say(at);
  }
  const outcomes: string[] = [];
  const waits = (): Promise<unknown> =>
    a.say("waits").then(
      () => outcomes.push("in line"),
      (error: unknown) => outcomes.push((error as SendError).code),
    );
  const first = waits();
  await world.pass(1_000);
  assert.deepEqual(outcomes, []);
  world.down = false;
  await world.until(() => outcomes.length === 1, "room");
  await first;
  world.down = true;
  world.relay.cut("a");
  await world.until(() => a.session.state !== "live", "the second cut");
  for (let at = a.session.pending; at < 256; at += 1) {
    await a.say(at);
  }
  const second = waits();
  await world.pass(1_000);
  a.session.close();
  await second;
  assert.deepEqual(outcomes, ["in line", "closed"]);
});

test("what is sent before the start is refused and not left hanging", async () => {
  const world = new World();
  const session = new Session({
    url: "wss://relay.test",
    sessionId: "session",
    ticket: "ticket-a",
    secret: SECRET,
    platform: world.platform(),
  });
  await assert.rejects(session.send({ kind: "note", negotiation: "", value: 1 }), { code: "not_started" });
  assert.equal(session.pending, 0);
});

test("too much, too large and what is not JSON is refused without quoting it", async () => {
  const world = new World();
  world.down = true;
  const a = world.page("a");
  const waiting = Array.from({ length: 256 }, (_, at) => assert.rejects(a.say(at), { code: "closed" }));
  await assert.rejects(a.say("one more"), { code: "outbox_full" });
  await assert.rejects(a.say(1n), { code: "not_json" });
  a.session.close();
  await Promise.all(waiting);
});

test("a message longer than 16 KiB is refused without quoting it, and leaves no gap", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  await assert.rejects(a.say(`hunter2${"x".repeat(20_000)}`), (error) => {
    assert.ok(error instanceof SendError);
    assert.equal(error.code, "too_large");
    assert.doesNotMatch(error.message, /hunter2/);
    return true;
  });
  await a.say("short");
  await world.until(() => b.messages.length === 1, "the message");
  assert.deepEqual(b.violations, []);
});

test("an unsealed session is its own explicit choice, and a secret of the wrong length is none", async () => {
  const world = new World();
  const [a, b] = [world.page("a", "unsealed"), world.page("b", "unsealed")];
  await a.say("plain \ud800 text");
  await world.until(() => b.messages.length === 1, "the message");
  assert.deepEqual(b.values, ["plain \ud800 text"]);
  const options = { url: "wss://relay.test", sessionId: "s", ticket: "hunter2", secret: new Uint8Array(16) };
  assert.throws(
    () => new Session(options),
    (error) => error instanceof RangeError && !error.message.includes("hunter2"),
  );
  assert.throws(() => new Session({ ...options, secret: "unsealed", url: "https://relay.test" }), TypeError);
});

test("the ticket is in the hello and in nothing else that is sent", async () => {
  const world = new World();
  const [a, b] = [world.page("a"), world.page("b")];
  await a.say("x");
  await world.until(() => b.messages.length === 1, "the message");
  const withTicket = world.relay.seen.filter((text) => text.includes("ticket-"));
  assert.ok(withTicket.length === 2 && withTicket.every((text) => text.includes('"hello"')));
});

/** A relay whose operator set other limits than the defaults. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace } from "../src/pace.js";
import { SendError } from "../src/session-types.js";
import { sealedLength, SignalSealer } from "../src/signal-seal.js";
import { Bench, LIMITS } from "./support/bench.js";
import { SECRET, World } from "./support/world.js";

/** The longest frame around a message: what a relay may put around what it delivers. */
const AROUND = '{"t":"msg","seq":18446744073709551615,"gen":4294967295,"d":""}'.length;

function gone(pace: Pace, now: number): number {
  let count = 0;
  for (; pace.readyAt <= now; count += 1) {
    pace.take(now);
  }
  return count;
}

test("a burst goes at once but for one, and the rest at the rate", () => {
  const pace = new Pace(LIMITS);
  assert.equal(gone(pace, 7_000), 59);
  assert.equal(pace.readyAt, 7_050);
  assert.equal(gone(pace, 8_000), 20);
  assert.equal(gone(pace, 60_000), 59);
});

for (const burst of [0, 1, 2]) {
  test(`a rate of 0 and a burst of ${burst} still let one message a second go`, () => {
    const pace = new Pace({ ...LIMITS, messagesPerSecond: 0, burst });
    assert.equal(gone(pace, 0), 1);
    assert.equal(pace.readyAt, 1_000);
  });
}

test("messages go as fast as the relay allows and no faster, also over several connections", () => {
  const limits = { ...LIMITS, messagesPerSecond: 2, burst: 4 };
  const bench = new Bench(() => 0).live({ limits });
  for (let n = 1; n <= 6; n += 1) {
    bench.send("x");
  }
  assert.deepEqual(bench.numbers, [1, 2, 3]);
  assert.deepEqual(bench.pass(499).numbers, [1, 2, 3]);
  assert.deepEqual(bench.pass(1).numbers, [1, 2, 3, 4]);
  bench.close(1006).pass(0).open().forget().welcome({ next: 5, limits });
  assert.deepEqual(bench.numbers, []);
  assert.deepEqual(bench.pass(500).numbers, [5]);
  assert.deepEqual(bench.pass(500).numbers, [5, 6]);
});

test("after a rate limit one goes when the relay says, and the rest at the rate", () => {
  const bench = new Bench().live();
  bench.send("1").send("2").send("3").forget().hear({ t: "err", code: "rate_limited", n: 2, retryMs: 800 }).pass(800);
  assert.deepEqual(bench.numbers, [2]);
  assert.deepEqual(bench.pass(49).numbers, [2]);
  assert.deepEqual(bench.pass(1).numbers, [2, 3]);
});

test("content fits when the frame that delivers it does, with the longest numbers there are", () => {
  for (const frameBytes of [1_000, 200_000]) {
    const bench = new Bench().live({ limits: { ...LIMITS, frameBytes } });
    bench.send("x".repeat(frameBytes - AROUND));
    const fault = (d: string): unknown => bench.core.send(d, bench.now).fault;
    assert.equal(fault("x".repeat(frameBytes - AROUND + 1)), "too_large");
    assert.equal(fault('"'.repeat((frameBytes - AROUND) / 2)), undefined);
    assert.equal(fault('"'.repeat((frameBytes - AROUND) / 2 + 1)), "too_large");
  }
});

test("content that no mailbox would ever hold is too large", () => {
  const bench = new Bench().live({ limits: { ...LIMITS, mailboxBytes: 400 } }).send("x".repeat(400));
  assert.equal(bench.core.send("x".repeat(401), bench.now).fault, "too_large");
});

test("no more is under way than the mailbox holds, and a smaller mailbox is no error for who sends", () => {
  const bench = new Bench().live({ limits: { ...LIMITS, mailboxMessages: 3 } });
  for (let n = 1; n <= 20; n += 1) {
    bench.send("x");
  }
  assert.deepEqual(bench.numbers, [1, 2, 3]);
  assert.deepEqual(bench.forget().hear({ t: "ack", n: 2 }).numbers, [4, 5]);
});

test("a larger mailbox lets more wait, up to what a session carries", () => {
  for (const [mailboxMessages, capacity] of [
    [1_000, 1_000],
    [60_000, 4_096],
  ] as const) {
    const bench = new Bench().live({ limits: { ...LIMITS, mailboxMessages } });
    for (let n = 1; n <= capacity; n += 1) {
      bench.send("x");
    }
    assert.equal(bench.core.send("x", bench.now).fault, "outbox_full");
  }
});

test("bytes that wait are bounded, too", () => {
  const bench = new Bench().live();
  let count = 0;
  for (; bench.core.send("x".repeat(20_000), bench.now).fault === undefined; count += 1);
  assert.equal(count, 27);
  assert.ok(bench.core.room.isFull);
  bench.hear({ t: "ack", n: 20 });
  assert.ok(!bench.core.room.isFull);
});

test("a larger mailbox that comes all at once is no flood", () => {
  const bench = new Bench().live({ limits: { ...LIMITS, mailboxMessages: 1_000 } });
  for (let seq = 1; seq <= 1_256; seq += 1) {
    bench.hear({ t: "msg", seq, gen: 1, d: "d" });
  }
  assert.deepEqual(bench.violations, []);
  assert.deepEqual(bench.hear({ t: "msg", seq: 1_257, gen: 1, d: "d" }).violations, ["flood"]);
});

test("a message as long as an operator may allow is read", () => {
  const bench = new Bench().live({ limits: { ...LIMITS, frameBytes: 1024 * 1024 } });
  bench.hear({ t: "msg", seq: 1, gen: 1, d: "x".repeat(1024 * 1024 - AROUND) });
  assert.equal(bench.delivered.length, 1);
});

test("the sealed length is never less than what sealing makes", async () => {
  const sealer = new SignalSealer({ secret: SECRET, sessionId: "session" }, "a");
  for (const length of [0, 1, 256, 257, 4_096, 16_384]) {
    const sealed = await sealer.seal("x".repeat(length));
    const bound = sealedLength("x".repeat(length))!;
    assert.ok(sealed!.length <= bound && bound - sealed!.length <= 16, `${length}`);
  }
  assert.equal(sealedLength("x".repeat(16_385)), undefined);
});

test("with small frames the longest padding that fits is the bound, and what is refused leaves no gap", async () => {
  const world = new World();
  world.relay.limits = { ...LIMITS, frameBytes: 8 * 1024 };
  const [a, b] = [world.page("a"), world.page("b")];
  const around = '{"kind":"note","negotiation":"","value":""}'.length;
  const tooLarge = (error: unknown): boolean => error instanceof SendError && error.code === "too_large";
  await a.say("x".repeat(4_096 - around));
  await assert.rejects(a.say("x".repeat(4_097 - around)), tooLarge);
  await a.say("short");
  await world.until(() => b.messages.length === 2, "both messages");
  assert.deepEqual([b.violations, a.session.state], [[], "live"]);
});

test("an offer with more candidates than the mailbox, the burst and the rate let through at once arrives whole", async () => {
  const world = new World();
  world.relay.limits = { ...LIMITS, mailboxMessages: 3, messagesPerSecond: 2, burst: 3 };
  const [a, b] = [world.page("a"), world.page("b")];
  await Promise.all(Array.from({ length: 20 }, (_, at) => a.say(at)));
  await world.until(() => b.messages.length === 20, "all messages");
  assert.deepEqual(
    b.values,
    Array.from({ length: 20 }, (_, at) => at),
  );
  assert.ok(world.now >= 8_500, "18 of them at two a second");
  assert.deepEqual([...a.violations, ...b.violations], []);
});

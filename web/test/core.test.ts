import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench } from "./support/bench.js";

test("the first frame is the hello, and every dial's try is greater than the one before", () => {
  const bench = new Bench();
  bench.do(bench.core.start(bench.now)).open();
  const hello = { t: "hello", v: 1, ticket: "ticket", cid: "c".repeat(32), last: 0 };
  assert.deepEqual(bench.sent, [{ ...hello, try: 1 }]);
  bench.close(1006).forget().pass(500).open();
  assert.deepEqual(bench.sent, [{ ...hello, try: 2 }]);
});

test("what was sent before the welcome goes out after it, in order and numbered from 1", () => {
  const bench = new Bench();
  bench.do(bench.core.start(bench.now));
  bench.send("x").send("y").open();
  assert.deepEqual(bench.types, ["hello"]);
  bench.forget().welcome();
  assert.deepEqual(bench.sent, [
    { t: "msg", n: 1, d: "x" },
    { t: "msg", n: 2, d: "y" },
  ]);
});

test("a resume drops what the relay has and sends the rest again", () => {
  const bench = new Bench().live();
  bench.send("1").send("2").send("3").hear({ t: "ack", n: 1 });
  assert.equal(bench.core.unacknowledged, 2);
  bench.close(1006).pass(1_000).open().forget().welcome({ next: 3 });
  assert.deepEqual(bench.sent, [{ t: "msg", n: 3, d: "3" }]);
  bench.hear({ t: "ack", n: 3 });
  assert.equal(bench.core.unacknowledged, 0);
});

for (const next of [1, 5]) {
  test(`a relay that expects ${next} after acknowledging 2 of 3 ends the session, since nothing can mend that`, () => {
    const bench = new Bench().live();
    bench.send("1").send("2").send("3").hear({ t: "ack", n: 2 }).close(1006).pass(1_000).open().welcome({ next });
    assert.deepEqual(bench.end, { type: "closed", reason: "out_of_step", code: undefined });
    assert.deepEqual(bench.hangUps, [4500]);
  });
}

test("a relay that claims to have stored what only waits here ends the session, and nothing counts as stored", () => {
  const bench = new Bench().live();
  bench.close(1006).send("1").send("2").pass(1_000).open().welcome({ next: 2 });
  assert.deepEqual(bench.end, { type: "closed", reason: "out_of_step", code: undefined });
  assert.equal(bench.core.unacknowledged, 2);
});

test("a refusal for longer than a minute is believed for a minute", () => {
  const bench = new Bench().live().send("1").forget();
  bench.hear({ t: "err", code: "unavailable", n: 1, retryMs: 1e12 });
  for (let second = 0; second < 59; second += 1) {
    bench.pass(1_000).hear({ t: "pong" });
  }
  assert.deepEqual(bench.numbers, []);
  assert.deepEqual(bench.pass(1_000).numbers, [1]);
});

test("a refusal holds everything from its n on until the delay is over, with five more already under way", () => {
  const bench = new Bench().live();
  for (const d of ["1", "2", "3", "4", "5", "6"]) {
    bench.send(d);
  }
  bench.forget().hear({ t: "err", code: "unavailable", n: 1, retryMs: 800 }).send("7").pass(799);
  assert.deepEqual(bench.numbers, []);
  bench.pass(1);
  assert.deepEqual(bench.numbers, [1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(bench.violations, []);
});

test("a refusal in the middle sends again from there only, and a repeated one waits again", () => {
  const bench = new Bench().live();
  bench.send("1").send("2").send("3").forget();
  bench.hear({ t: "ack", n: 1 }).hear({ t: "err", code: "mailbox_full", n: 2, retryMs: 500 }).pass(500);
  assert.deepEqual(bench.numbers, [2, 3]);
  bench.forget().hear({ t: "err", code: "mailbox_full", n: 2, retryMs: 500 }).pass(499);
  assert.deepEqual(bench.numbers, []);
  assert.deepEqual(bench.forget().pass(1).numbers, [2, 3]);
});

test("a refusal without a number is told and holds nothing", () => {
  const bench = new Bench().live();
  bench.hear({ t: "err", code: "unavailable", retryMs: 500 }).send("1");
  assert.deepEqual(bench.numbers, [1]);
  assert.ok(bench.events.some(({ type }) => type === "refused"));
});

test("at most 32 messages are under way, and each acknowledgement lets more go", () => {
  const bench = new Bench().live();
  for (let n = 1; n <= 40; n += 1) {
    bench.send(String(n));
  }
  assert.equal(bench.numbers.at(-1), 32);
  bench.hear({ t: "ack", n: 3 });
  assert.equal(bench.numbers.at(-1), 35);
});

test("257 messages without an acknowledgement are too many, and one over the frame limit is too large", () => {
  const bench = new Bench().live();
  for (let n = 1; n <= 256; n += 1) {
    bench.send("x");
  }
  assert.equal(bench.core.send("x", bench.now).fault, "outbox_full");
  assert.equal(new Bench().live().core.send("ü".repeat(16_384), 0).fault, "too_large");
});

test("an acknowledgement of what was never sent is reported and believed in nothing", () => {
  const bench = new Bench().live();
  bench.send("1").hear({ t: "ack", n: 2 });
  assert.deepEqual(bench.violations, ["acknowledged_unsent"]);
  assert.equal(bench.core.unacknowledged, 1);
});

test("received messages are acknowledged when done, together, within 200 ms", () => {
  const bench = new Bench().live();
  for (const seq of [1, 2, 3]) {
    bench.hear({ t: "msg", seq, gen: 1, d: "d" });
  }
  bench.pass(1_000);
  assert.deepEqual(bench.types, []);
  for (const seq of [1, 2, 3]) {
    bench.do(bench.core.done(seq, bench.now));
  }
  assert.deepEqual(bench.sent, []);
  bench.pass(200);
  assert.deepEqual(bench.sent, [{ t: "ack", seq: 3 }]);
});

test("32 received messages don't wait for the delay", () => {
  const bench = new Bench().live();
  for (let seq = 1; seq <= 32; seq += 1) {
    bench.hear({ t: "msg", seq, gen: 1, d: "d" });
    bench.do(bench.core.done(seq, bench.now));
  }
  assert.deepEqual(bench.sent, [{ t: "ack", seq: 32 }]);
});

test("a page load that takes over starts behind what the one before acknowledged", () => {
  const bench = new Bench().live({ base: 17, gen: 2 });
  bench.hear({ t: "msg", seq: 18, gen: 1, d: "d" });
  assert.deepEqual(
    bench.delivered.map(({ seq }) => seq),
    [18],
  );
  assert.deepEqual(bench.violations, []);
});

test("the hello of a resume names what is done, and what comes again is handed on once", () => {
  const bench = new Bench().live();
  bench.hear({ t: "msg", seq: 1, gen: 1, d: "1" }).hear({ t: "msg", seq: 2, gen: 1, d: "2" });
  bench.do(bench.core.done(1, bench.now)).close(1006).pass(1_000).open();
  assert.equal(bench.sent.at(-1)?.["last"], 1);
  bench.do(bench.core.done(2, bench.now));
  bench.welcome({ base: 1 }).hear({ t: "msg", seq: 2, gen: 1, d: "2" }).hear({ t: "msg", seq: 3, gen: 1, d: "3" });
  assert.deepEqual(
    bench.delivered.map(({ seq }) => seq),
    [1, 2, 3],
  );
  assert.deepEqual(bench.violations, []);
  bench.forget().pass(200);
  assert.deepEqual(bench.sent, [{ t: "ack", seq: 2 }]);
});

test("a gap in the sequence is reported, and the session resumes on another connection", () => {
  const bench = new Bench().live();
  bench.hear({ t: "msg", seq: 2, gen: 1, d: "2" });
  assert.deepEqual(bench.violations, ["sequence_gap"]);
  assert.deepEqual(bench.hangUps, [4500]);
  assert.equal(bench.state, "waiting");
  assert.deepEqual(bench.delivered, []);
});

test("a repeated message is reported and not handed on", () => {
  const bench = new Bench().live();
  bench.hear({ t: "msg", seq: 1, gen: 1, d: "1" }).hear({ t: "msg", seq: 1, gen: 1, d: "1" });
  assert.deepEqual(bench.violations, ["repeated"]);
  assert.equal(bench.delivered.length, 1);
});

test("more than a mailbox holds without waiting for us is a flood, and memory stays bounded", () => {
  const bench = new Bench().live();
  for (let seq = 1; seq <= 600; seq += 1) {
    bench.hear({ t: "msg", seq, gen: 1, d: "d" });
  }
  assert.equal(bench.delivered.length, 512);
  assert.deepEqual(bench.violations, ["flood"]);
});

test("a relay that trimmed what we never saw ends the session", () => {
  const bench = new Bench().live();
  bench.close(1006).pass(1_000).open().welcome({ base: 3 });
  assert.deepEqual(bench.end, { type: "closed", reason: "out_of_step", code: undefined });
});

test("another generation of the peer is told before its messages, and none of the old one's follow", () => {
  const bench = new Bench().live();
  bench
    .hear({ t: "peer", state: "online", gen: 1 })
    .hear({ t: "msg", seq: 1, gen: 1, d: "1" })
    .hear({ t: "peer", state: "online", gen: 2, seq: 2 })
    .hear({ t: "msg", seq: 3, gen: 1, d: "old" })
    .hear({ t: "msg", seq: 4, gen: 2, d: "new" });
  assert.deepEqual(
    bench.delivered.map(({ item, restarted }) => [item?.type, restarted]),
    [
      ["message", false],
      ["peer", true],
      [undefined, false],
      ["message", false],
    ],
  );
  assert.deepEqual(bench.violations, ["stale_generation"]);
});

test("a generation whose announcement the relay left out is noticed all the same", () => {
  const bench = new Bench().live();
  bench.hear({ t: "msg", seq: 1, gen: 1, d: "1" }).hear({ t: "msg", seq: 2, gen: 2, d: "2" });
  assert.deepEqual(
    bench.delivered.map(({ restarted }) => restarted),
    [false, true],
  );
});

test("a peer that was replaced before we heard of it restarts, too", () => {
  const bench = new Bench().live();
  bench.hear({ t: "peer", state: "online", gen: 2, seq: 1 });
  assert.deepEqual(
    bench.delivered.map(({ restarted }) => restarted),
    [true],
  );
});

test("closing says bye with the mood after acknowledging what is done, and nothing after it counts", () => {
  const bench = new Bench().live();
  bench.hear({ t: "msg", seq: 1, gen: 1, d: "1" });
  bench.do(bench.core.done(1, bench.now)).do(bench.core.close("direct", bench.now));
  assert.deepEqual(bench.sent, [
    { t: "ack", seq: 1 },
    { t: "bye", mood: "direct" },
  ]);
  assert.deepEqual(bench.hangUps, [1000]);
  assert.deepEqual(bench.end, { type: "closed", reason: "left", code: undefined });
  bench.forget().close(4410).hear({ t: "ping" }).pass(3_600_000).do(bench.core.close("direct", bench.now));
  assert.deepEqual([bench.sent, bench.events, bench.dials], [[], [], 0]);
  assert.equal(bench.core.send("x", bench.now).fault, "closed");
});

test("what comes from an earlier dial is ignored", () => {
  const bench = new Bench().live();
  const old = bench.dial;
  bench.close(1006).pass(1_000).open().welcome();
  const before = bench.events.length;
  bench.do(bench.core.closed(old, 4409, bench.now)).do(bench.core.received(old, "{", bench.now));
  assert.equal(bench.events.length, before);
});

for (const text of [
  "{",
  "null",
  "[]",
  "1",
  '"x"',
  "{}",
  '{"t":1}',
  '{"t":"ack"}',
  '{"t":"ack","n":-1}',
  '{"t":"ack","n":1.5}',
  '{"t":"msg","seq":0,"gen":1,"d":"x"}',
  '{"t":"msg","seq":1,"gen":1,"d":{}}',
  '{"t":"peer","state":"here","gen":1}',
  '{"t":"err","code":"other","n":1,"retryMs":1}',
  '{"t":"ice","iceServers":[{}]}',
  '{"t":"goaway"}',
  '{"t":"welcome"}',
  "[".repeat(10_000),
  "x".repeat(70_000),
]) {
  test(`a malformed frame is reported and the connection replaced: ${text.slice(0, 40)}`, () => {
    const bench = new Bench().live();
    bench.hearText(text);
    assert.deepEqual(bench.violations, ["malformed_frame"]);
    assert.deepEqual(bench.hangUps, [4400]);
    assert.equal(bench.state, "waiting");
  });
}

test("binary frames are malformed, frames of unknown types and fields are not", () => {
  assert.deepEqual(new Bench().live().hearText(new ArrayBuffer(2)).violations, ["malformed_frame"]);
  const bench = new Bench().live();
  bench.hear({ t: "later", n: 1 }).hear({ t: "pong", more: [1] });
  assert.deepEqual([bench.violations, bench.hangUps], [[], []]);
});

test("something else than a welcome first, or a second welcome, is malformed", () => {
  const first = new Bench();
  first.do(first.core.start(first.now)).open().hear({ t: "ack", n: 0 });
  assert.deepEqual(first.violations, ["malformed_frame"]);
  assert.deepEqual(new Bench().live().welcome().violations, ["malformed_frame"]);
});

test("a role that doesn't fit the slot is malformed, and another slot on a resume ends the session", () => {
  const first = new Bench();
  first.do(first.core.start(first.now)).open().welcome({ role: "polite" });
  assert.deepEqual(first.violations, ["malformed_frame"]);
  const second = new Bench().live();
  second.close(1006).pass(1_000).open().welcome({ slot: "b", role: "polite" });
  assert.deepEqual(second.violations, ["out_of_step"]);
});

test("fresh TURN credentials are asked for once per 30 s, whatever the application wants", () => {
  const bench = new Bench().live();
  for (let time = 0; time < 10; time += 1) {
    bench.do(bench.core.refreshIce(bench.now));
  }
  assert.deepEqual(bench.types, ["ice"]);
  bench.hear({ t: "ice", iceServers: [{ urls: "turn:t" }], expiresAt: "2030-01-01T00:00:00Z" });
  assert.ok(bench.events.some(({ type }) => type === "ice"));
  bench.do(bench.core.refreshIce(bench.now)).pass(20_000).hear({ t: "pong" }).pass(9_999);
  assert.equal(bench.types.filter((type) => type === "ice").length, 1);
  bench.pass(1);
  assert.equal(bench.types.filter((type) => type === "ice").length, 2);
});

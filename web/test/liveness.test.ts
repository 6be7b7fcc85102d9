/** Dials, waits, close codes and heartbeats: the core with its clock in the test's hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench } from "./support/bench.js";

const FINAL: [number, string][] = [
  [1000, "done"],
  [1002, "protocol_error"],
  [1003, "protocol_error"],
  [1007, "protocol_error"],
  [1009, "protocol_error"],
  [4400, "protocol_error"],
  [4401, "bad_ticket"],
  [4403, "revoked"],
  [4404, "no_session"],
  [4409, "replaced"],
  [4410, "over"],
  [4413, "total_exceeded"],
  [4426, "version"],
  [4429, "abuse"],
  [4499, "other"],
];

for (const [code, reason] of FINAL) {
  test(`${code} is final: ${reason}`, () => {
    const bench = new Bench().live().close(code);
    assert.deepEqual(bench.end, { type: "closed", reason, code });
    assert.equal(bench.core.deadline, Infinity);
    bench.do(bench.core.wake(bench.now));
    assert.equal(bench.dials, 0);
  });
}

for (const code of [1001, 1005, 1006, 1011, 1012, 1013, 1015, 3000, 4399, 4500, 4503, 4508, 4512, 4599]) {
  test(`${code} means resume`, () => {
    const bench = new Bench().live().close(code).pass(21_000);
    assert.equal(bench.end, undefined);
    assert.ok(bench.dials > 0);
  });
}

test("delays are spread over the whole of 0.5, 1, 2, 4, 8 and then 15 s", () => {
  for (const random of [0, 0.5, 0.999]) {
    const bench = new Bench(() => random);
    bench.do(bench.core.start(bench.now));
    for (const cap of [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]) {
      bench.close(1006);
      assert.equal(bench.core.deadline - bench.now, Math.floor(cap * random));
      bench.pass(bench.core.deadline - bench.now);
    }
  }
});

test("a connection that lived resets the delay, one that was cut at once doesn't", () => {
  const bench = new Bench(() => 0.999).live();
  for (let time = 0; time < 4; time += 1) {
    bench.close(1006);
    bench.pass(bench.core.deadline - bench.now).open().welcome();
  }
  bench.close(1006);
  assert.ok(bench.core.deadline - bench.now > 4_000);
  bench.pass(bench.core.deadline - bench.now).open().welcome().pass(5_000).close(1006);
  assert.ok(bench.core.deadline - bench.now < 500);
});

test("1013 waits 5 s or more, and a wake-up doesn't shorten that", () => {
  const bench = new Bench(() => 0).live().close(1013);
  bench.do(bench.core.wake(bench.now)).pass(4_999);
  assert.equal(bench.dials, 0);
  assert.equal(bench.pass(1).dials, 1);
});

test("a goaway moves the session at a random moment within its time, and the old socket works until then", () => {
  const bench = new Bench(() => 0.25).live().hear({ t: "goaway", inMs: 10_000 });
  bench.pass(2_499).send("1");
  assert.deepEqual([bench.dials, bench.numbers], [0, [1]]);
  bench.pass(1);
  assert.deepEqual([bench.dials, bench.hangUps], [1, [1000]]);
  bench.open().forget().welcome({ next: 1 });
  assert.deepEqual(bench.numbers, [1]);
});

test("the first goaway says when the session moves, and the next dial's delay begins anew", () => {
  const bench = new Bench(() => 0.5).live();
  for (let time = 0; time < 4; time += 1) {
    bench.close(1006).pass(bench.core.deadline - bench.now).open().welcome();
  }
  bench.pass(6_000).forget().hear({ t: "goaway", inMs: 10_000 }).pass(4_000).hear({ t: "goaway", inMs: 10_000 });
  assert.equal(bench.pass(999).dials, 0);
  assert.equal(bench.pass(1).dials, 1);
  bench.close(1006);
  assert.equal(bench.core.deadline - bench.now, 250);
});

test("a session that moves after living long is not given up as unreachable", () => {
  const bench = new Bench(() => 0).live();
  for (let second = 0; second < 700; second += 10) {
    bench.pass(10_000).hear({ t: "pong" });
  }
  bench.forget().hear({ t: "goaway", inMs: 1 }).pass(1);
  assert.deepEqual([bench.dials, bench.end], [1, undefined]);
});

for (const [code, reason] of [
  [4401, "bad_ticket"],
  [4404, "no_session"],
  [4409, "replaced"],
] as const) {
  test(`a session that ended while it was away is over when a dial is answered ${code}`, () => {
    const bench = new Bench().live().close(1006).pass(1_000).open().close(code);
    assert.deepEqual(bench.end, { type: "closed", reason, code });
    bench.forget().do(bench.core.wake(bench.now)).pass(3_600_000);
    assert.equal(bench.dials, 0);
  });
}

test("a dial that is open but brings no welcome gets 4 s after a wake-up", () => {
  const bench = new Bench();
  bench.do(bench.core.start(bench.now)).open().pass(1_000);
  bench.do(bench.core.wake(bench.now)).pass(3_999);
  assert.deepEqual(bench.hangUps, []);
  assert.deepEqual(bench.pass(1).hangUps, [4508]);
});

test("a socket closed 1012 in the middle of a goaway dials at the moment that was drawn", () => {
  const bench = new Bench(() => 0.5).live().hear({ t: "goaway", inMs: 10_000 }).pass(1_000).close(1012);
  assert.equal(bench.pass(3_999).dials, 0);
  assert.equal(bench.pass(1).dials, 1);
});

test("a dial that brings no welcome within 10 s is given up", () => {
  const bench = new Bench();
  bench.do(bench.core.start(bench.now)).pass(10_000);
  assert.deepEqual(bench.hangUps, [4508]);
  assert.equal(bench.state, "waiting");
});

test("without a connection for longer than a session lives, the session is over", () => {
  const bench = new Bench();
  bench.do(bench.core.start(bench.now));
  for (let time = 0; time < 10_000 && bench.end === undefined; time += 1) {
    bench.close(1006);
    bench.pass(1_000);
  }
  assert.deepEqual(bench.end, { type: "closed", reason: "unreachable", code: undefined });
  assert.ok(bench.now > 600_000 && bench.now < 700_000);
});

test("waking up dials at once", () => {
  const bench = new Bench(() => 0.999);
  bench.do(bench.core.start(bench.now));
  for (let time = 0; time < 5; time += 1) {
    bench.close(1006).pass(15_000);
  }
  bench.close(1006).forget();
  assert.equal(bench.do(bench.core.wake(bench.now)).dials, 1);
});

test("20 s without a frame send a text ping, and 10 s without an answer drop the connection", () => {
  const bench = new Bench().live().pass(19_999);
  assert.deepEqual(bench.types, []);
  bench.pass(1);
  assert.deepEqual(bench.types, ["ping"]);
  bench.pass(9_999);
  assert.deepEqual(bench.hangUps, []);
  bench.pass(1);
  assert.deepEqual(bench.hangUps, [4512]);
});

test("any frame answers a ping", () => {
  const bench = new Bench().live().pass(25_000).hear({ t: "later" }).pass(9_000);
  assert.deepEqual([bench.hangUps, bench.types], [[], ["ping"]]);
});

test("nine idle minutes against a relay that answers: bytes go both ways at least every 30 s", () => {
  const bench = new Bench().live();
  for (let second = 0; second < 540; second += 1) {
    const before = bench.sent.length;
    bench.pass(1_000);
    if (bench.sent.length > before) {
      bench.hear({ t: "pong" });
    }
  }
  assert.deepEqual(bench.hangUps, []);
  assert.deepEqual(bench.types, Array.from({ length: bench.types.length }, () => "ping"));
  assert.ok(bench.types.length >= 540 / 30);
});

test("a relay that talks all the time still hears from us", () => {
  const bench = new Bench().live();
  for (let second = 0; second < 60; second += 1) {
    bench.pass(1_000).hear({ t: "peer", state: "online", gen: 1 });
  }
  assert.ok(bench.types.length >= 2);
});

test("a text ping of the relay is answered", () => {
  assert.deepEqual(new Bench().live().hear({ t: "ping" }).types, ["pong"]);
});

test("a background page whose timer runs once a minute never drops a healthy connection", () => {
  const bench = new Bench().live();
  for (let minute = 0; minute < 60; minute += 1) {
    bench.sleep(60_000);
    assert.equal(bench.types.at(-1), "ping");
    // The answer comes at once: pages hear in the background, only their timers are slow.
    bench.hear({ t: "pong" });
  }
  assert.deepEqual(bench.hangUps, []);
});

test("a frozen page concludes nothing from what it slept through: it pings again and waits anew", () => {
  const bench = new Bench().live().pass(20_000).sleep(300_000);
  assert.deepEqual([bench.types, bench.hangUps], [["ping", "ping"], []]);
  bench.pass(9_999);
  assert.deepEqual(bench.hangUps, []);
  bench.pass(1);
  assert.deepEqual(bench.hangUps, [4512]);
});

test("a page that sleeps in the middle of the wait is noticed even if it wakes just before the end", () => {
  const bench = new Bench().live().pass(20_000).pass(1_000).sleep(9_000);
  assert.deepEqual([bench.types, bench.hangUps], [["ping", "ping"], []]);
});

test("after a wake-up the answer must come within 4 s", () => {
  const bench = new Bench().live();
  bench.do(bench.core.wake(bench.now));
  assert.deepEqual(bench.types, ["ping"]);
  bench.pass(3_999);
  assert.deepEqual(bench.hangUps, []);
  bench.pass(1);
  assert.deepEqual(bench.hangUps, [4512]);
});

test("a wake-up in the middle of a wait shortens it without another ping", () => {
  const bench = new Bench().live().pass(21_000);
  bench.do(bench.core.wake(bench.now)).pass(4_000);
  assert.deepEqual([bench.types, bench.hangUps], [["ping"], [4512]]);
});

test("a wake-up after sleep, before the late timer, pings and gives the answer its time", () => {
  const bench = new Bench().live().pass(20_000);
  bench.now += 600_000;
  bench.do(bench.core.wake(bench.now)).pass(3_000);
  assert.deepEqual([bench.types, bench.hangUps], [["ping", "ping"], []]);
});

/** A relay that lies: of what it presents only the true sequence is taken, and the rest is reported. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SignalSealer } from "../src/signal-seal.js";
import type { Frame } from "./support/bench.js";
import { SECRET, World, type Page } from "./support/world.js";

/** What the relay makes of the messages to b: it numbers its lies as if they were true. */
type Lie = (d: string, at: number) => string[];

const COUNT = 12;

async function hear(lie: Lie, done: number | ((b: Page) => boolean)): Promise<Page> {
  const world = new World();
  let [seq, at] = [0, 0];
  world.relay.tamper = (to, frame) => {
    const told = to === "b" && frame.t === "msg" ? lie(frame["d"] as string, (at += 1)) : undefined;
    return told === undefined ? [frame] : told.map((d): Frame => ({ ...frame, seq: (seq += 1), d }));
  };
  const [a, b] = [world.page("a"), world.page("b")];
  await world.until(() => b.session.state === "live", "live");
  for (let value = 1; value <= COUNT; value += 1) {
    await a.say(value);
  }
  const isDone = typeof done === "number" ? () => b.messages.length + b.violations.length >= done : done;
  await world.until(() => isDone(b), "all of it");
  await world.pass(1_000);
  assert.equal(b.session.state, "live");
  return b;
}

const all = Array.from({ length: COUNT }, (_, at) => at + 1);

test("dropped messages show as gaps", async () => {
  const b = await hear((d, at) => (at % 4 === 0 ? [] : [d]), 11);
  assert.deepEqual(
    b.values,
    all.filter((value) => value % 4 !== 0),
  );
  assert.deepEqual(b.violations, ["gap 1", "gap 1"]);
});

test("repeated messages are taken once", async () => {
  const b = await hear((d) => [d, d, d], COUNT * 3);
  assert.deepEqual(b.values, all);
  assert.deepEqual(b.violations, Array(COUNT * 2).fill("replayed"));
});

test("of swapped neighbours the later is taken, and the earlier, which comes after it, is not", async () => {
  let kept = "";
  const b = await hear((d, at) => {
    if (at % 2 === 1) {
      kept = d;
      return [];
    }
    return [d, kept];
  }, COUNT * 1.5 - 1);
  assert.deepEqual(
    b.values,
    all.filter((value) => value % 2 === 0),
  );
  assert.deepEqual(b.violations.filter((line) => line === "replayed").length, COUNT / 2);
  assert.deepEqual(b.violations.filter((line) => line === "gap 1").length, COUNT / 2 - 1);
});

test("the whole session presented backwards yields one message", async () => {
  const held: string[] = [];
  const b = await hear((d) => (held.push(d) === COUNT ? held.reverse() : []), COUNT);
  assert.deepEqual(b.values, [COUNT]);
  assert.deepEqual(b.violations, Array(COUNT - 1).fill("replayed"));
});

test("edited messages are not taken, whatever part was edited", async () => {
  const edit: ((d: string) => string)[] = [
    (d) => flip(d, d.length - 1),
    (d) => flip(d, d.length - 40),
    (d) => d.replace(/^e1\.(.)/, (_, letter) => `e1.${letter === "A" ? "B" : "A"}`),
    (d) => d.replace(/\.([0-9]+)\./, (_, m) => `.${Number(m) + 1}.`),
    (d) => d.slice(0, -4),
    (d) => `${d}AAAA`,
    (d) => d.replace("e1.", "e2."),
    () => "",
    () => '{"kind":"note","negotiation":"","value":"forged"}',
  ];
  for (const change of edit) {
    const b = await hear((d, at) => [at === 3 ? change(d) : d], COUNT + 1);
    assert.deepEqual(
      b.values,
      all.filter((value) => value !== 3),
    );
    assert.match(b.violations[0]!, /not_authentic|not_sealed/);
    assert.deepEqual(b.violations.slice(1), ["gap 1"]);
  }
});

test("our own messages given back, and those of another session with the same secret, are not taken", async () => {
  const [reflected, spliced] = [
    await new SignalSealer({ secret: SECRET, sessionId: "session" }, "b").seal('{"kind":"x","negotiation":""}'),
    await new SignalSealer({ secret: SECRET, sessionId: "other" }, "a").seal('{"kind":"x","negotiation":""}'),
  ];
  const b = await hear((d, at) => (at === 1 ? [reflected!, spliced!, d] : [d]), COUNT + 2);
  assert.deepEqual(b.values, all);
  assert.deepEqual(b.violations, ["not_authentic", "not_authentic"]);
});

test("messages of a page that was left don't come back", async () => {
  const left = new SignalSealer({ secret: SECRET, sessionId: "session" }, "a");
  const old = [1, 2].map((at) => left.seal(`{"kind":"note","negotiation":"","value":"old ${at}"}`));
  const [first, second] = await Promise.all(old);
  const b = await hear((d, at) => (at === 1 ? [first!, d, second!] : [d]), COUNT + 2);
  assert.deepEqual(b.values, ["old 1", ...all]);
  assert.deepEqual(b.violations, ["retired_load"]);
});

test("authentic text that is no message is reported", async () => {
  const sealer = new SignalSealer({ secret: SECRET, sessionId: "session" }, "a");
  const texts = ["{}", "null", "[]", '"x"', "1", '{"kind":1,"negotiation":""}', "not JSON"];
  const frames = await Promise.all(texts.map((text) => sealer.seal(text)));
  const b = await hear((d, at) => (at === 1 ? [...frames.map((frame) => frame!), d] : [d]), COUNT + texts.length);
  assert.deepEqual(b.values, all);
  assert.deepEqual(b.violations, Array(texts.length).fill("malformed_message"));
});

test("whatever mix of lies it tells, what is taken only ever grows, and all else is reported", async () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const random = seeded(seed);
    const held: string[] = [];
    let [told, toldAll] = [0, false];
    const lie: Lie = (d, at) => {
      held.push(d);
      const out: string[] = [];
      for (let count = Math.floor(random() * 4); count > 0; count -= 1) {
        const one = held[Math.floor(random() * held.length)]!;
        out.push(random() < 0.2 ? flip(one, Math.floor(random() * one.length)) : one);
      }
      // The last one is always told truly, so that the end is known.
      const all = at === COUNT ? [...out, d] : out;
      told += all.length;
      toldAll = at === COUNT;
      return all;
    };
    const b = await hear(lie, (page) => toldAll && page.messages.length + rejected(page) === told);
    const values = b.values as number[];
    assert.ok(
      values.every((value, at) => at === 0 || value > values[at - 1]!),
      `seed ${seed}: ${values.join()}`,
    );
    assert.equal(values.length + rejected(b), told, `seed ${seed}`);
    assert.equal(values.at(-1), COUNT);
  }
});

function rejected(page: Page): number {
  return page.violations.filter((line) => !line.startsWith("gap")).length;
}

function flip(text: string, at: number): string {
  const letter = text[at] === "B" ? "C" : "B";
  return text.slice(0, at) + letter + text.slice(at + 1);
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

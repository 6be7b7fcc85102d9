import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "../src/bytes.js";
import { deriveRendezvous } from "../src/rendezvous.js";
import { SignalOpener, SignalSealer, newSecret, type Slot } from "../src/signal-seal.js";
import { fromHex, vectors } from "./support/vectors.js";

interface Vectors {
  secretHex: string;
  sessionId: string;
  open: { senderSlot: Slot; rHex: string; m: number; plaintext: string; frame: string }[];
  reject: { why: string; senderSlot?: Slot; receiverSlot?: Slot; sequence: string[]; acceptFirst: number }[];
}

const known = vectors("sealed-signal.json") as Vectors;
const secret = { secret: fromHex(known.secretHex), sessionId: known.sessionId };
const other = (slot: Slot): Slot => (slot === "a" ? "b" : "a");

for (const vector of known.open) {
  test(`the frame of ${vector.senderSlot} with m = ${vector.m} and r = ${vector.rHex.slice(0, 4)} is opened`, async () => {
    const opened = await new SignalOpener(secret, other(vector.senderSlot)).open(vector.frame);
    assert.ok(opened.ok);
    assert.equal(opened.text, vector.plaintext);
  });
}

// The counter can't be set, and that is the point of it: frames far into a load aren't made here.
for (const vector of known.open.filter(({ m }) => m < 100)) {
  test(`the frame of ${vector.senderSlot} with m = ${vector.m} and r = ${vector.rHex.slice(0, 4)} is made`, async () => {
    const sealer = new SignalSealer(secret, vector.senderSlot, fromHex(vector.rHex));
    let frame = "";
    for (let m = 1; m <= vector.m; m += 1) {
      frame = await sealer.sealExactly(utf8(vector.plaintext));
    }
    assert.equal(frame, vector.frame);
  });
}

for (const vector of known.reject) {
  test(`of a wrong sequence only the true beginning is taken: ${vector.why}`, async () => {
    const receiver = vector.receiverSlot ?? other(vector.senderSlot ?? "a");
    const opener = new SignalOpener(secret, receiver);
    const taken: boolean[] = [];
    for (const frame of vector.sequence) {
      taken.push((await opener.open(frame)).ok);
    }
    assert.deepEqual(
      taken,
      vector.sequence.map((_, at) => at < vector.acceptFirst),
    );
  });
}

const meetings = vectors("rendezvous.json") as { cases: { secretHex: string; rendezvous: string; kHex: string }[] };
for (const [at, vector] of meetings.cases.entries()) {
  test(`both sides derive rendezvous and secret of vector ${at}`, async () => {
    const derived = await deriveRendezvous(fromHex(vector.secretHex));
    assert.equal(derived.rendezvous, vector.rendezvous);
    assert.deepEqual(derived.secret, fromHex(vector.kHex));
  });
}

test("a shared secret that can be guessed is refused", async () => {
  await assert.rejects(deriveRendezvous(new Uint8Array(15)), RangeError);
});

test("a secret of another length than 32 bytes is refused", () => {
  assert.throws(() => new SignalSealer({ secret: new Uint8Array(31), sessionId: "s" }, "a"), RangeError);
});

test("kinds don't show by length", async () => {
  const sealer = new SignalSealer({ secret: newSecret(), sessionId: "s" }, "a");
  const short = await sealer.seal("{}");
  const long = await sealer.seal("x".repeat(256));
  const longer = await sealer.seal("x".repeat(257));
  assert.equal(short?.length, long?.length);
  assert.ok(longer!.length > long!.length);
  assert.equal(await sealer.seal("x".repeat(16385)), undefined);
});

test("messages sealed at the same time get numbers in the order of the calls", async () => {
  const both = { secret: newSecret(), sessionId: "s" };
  const sealer = new SignalSealer(both, "a");
  const opener = new SignalOpener(both, "b");
  const frames = await Promise.all(Array.from({ length: 50 }, (_, at) => sealer.seal(String(at))));
  for (const [at, frame] of frames.entries()) {
    const opened = await opener.open(frame!);
    assert.ok(opened.ok && opened.text.trim() === String(at) && opened.missing === 0);
  }
});

test("a gap is counted, also at the beginning of a later load, but not of the first", async () => {
  const both = { secret: newSecret(), sessionId: "s" };
  const opener = new SignalOpener(both, "b");
  const [first, second] = [new SignalSealer(both, "a"), new SignalSealer(both, "a")];
  const lost = await first.seal("1");
  assert.deepEqual(await opened(opener, await first.seal("2")), { load: 1, missing: 0 });
  await first.seal("3");
  await first.seal("4");
  assert.deepEqual(await opened(opener, await first.seal("5")), { load: 1, missing: 2 });
  assert.deepEqual(await opener.open(lost!), { ok: false, rejection: "replayed" });
  await second.seal("1");
  assert.deepEqual(await opened(opener, await second.seal("2")), { load: 2, missing: 1 });
  assert.deepEqual(await opener.open((await first.seal("6"))!), { ok: false, rejection: "retired_load" });
});

test("a frame that is not authentic changes nothing, whatever load and count it claims", async () => {
  const both = { secret: newSecret(), sessionId: "s" };
  const opener = new SignalOpener(both, "b");
  const sealer = new SignalSealer(both, "a");
  assert.ok((await opener.open((await sealer.seal("1"))!)).ok);
  const frame = (await sealer.seal("2"))!;
  const [, load, , body] = frame.split(".");
  for (const forged of [
    `e1.${load!}.999999.${body!}`,
    `e1.${"A".repeat(22)}.1.${body!}`,
    `e1.${load!}.9007199254740993.${body!}`,
    `e1.${load!}.02.${body!}`,
    `${frame}.x`,
    `e1.${load!}.2.`,
  ]) {
    assert.ok(!(await opener.open(forged)).ok, forged);
  }
  assert.ok((await opener.open(frame)).ok);
});

async function opened(opener: SignalOpener, frame: string | undefined): Promise<unknown> {
  const result = await opener.open(frame!);
  return result.ok ? { load: result.load, missing: result.missing } : result;
}

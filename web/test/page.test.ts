/** The pure parts of the playground's page: the steps of a handshake, and messages in words. */
import assert from "node:assert/strict";
import { describe as group, test } from "node:test";
import { afterMessage, atFirst, renewed, steps, type Progress } from "../page/steps.js";
import { readLink } from "../page/place.js";
import { describe, endInWords, inFull, inSeconds, peerInWords, shorten, tookSeconds, type Ending } from "../page/words.js";
import type { SignalMessage } from "../src/sovereign-relay.js";

const message = (kind: string, value: unknown = null, negotiation = "n1"): SignalMessage => ({ kind, negotiation, value });

/** What has happened after these messages, each a direction and a kind. */
function after(start: Progress, ...messages: readonly (readonly ["out" | "in", string])[]): Progress {
  return messages.reduce((before, [direction, kind]) => afterMessage(before, direction, message(kind)), start);
}

const done = (progress: Progress): boolean[] => steps(progress).map(({ isDone }) => isDone);
const detail = (progress: Progress, title: string): string | undefined =>
  steps(progress).find((step) => step.title === title)?.detail;

group("steps", () => {
  test("there are six in order, of which a place in a session is the first done", () => {
    const progress = atFirst("place a");
    assert.deepEqual(
      steps(progress).map(({ title }) => title),
      [
        "A place in a session",
        "Hello to the relay",
        "The other side is here",
        "Offer and answer",
        "Addresses to try",
        "Connected",
      ],
    );
    assert.deepEqual(done(progress), [true, false, false, false, false, false]);
    assert.equal(detail(progress, "A place in a session"), "place a");
    assert.equal(detail(progress, "Hello to the relay"), "dialing");
  });

  test("a handshake goes from step to step as the offerer sees it", () => {
    let progress: Progress = { ...atFirst("place a"), welcome: "slot a" };
    assert.deepEqual(done(progress), [true, true, false, false, false, false]);
    progress = { ...progress, peerHere: true };
    assert.equal(detail(progress, "The other side is here"), "both have said hello");
    progress = after(progress, ["out", "offer"]);
    assert.equal(detail(progress, "Offer and answer"), "offer sent");
    assert.deepEqual(done(progress), [true, true, true, false, false, false]);
    progress = after(progress, ["out", "candidate"], ["in", "answer"]);
    assert.equal(detail(progress, "Offer and answer"), "offer sent, answer opened");
    assert.equal(detail(progress, "Addresses to try"), "1 sent, 0 opened");
    assert.deepEqual(done(progress), [true, true, true, true, false, false]);
    progress = after(progress, ["in", "candidate"], ["in", "candidate"]);
    assert.equal(detail(progress, "Addresses to try"), "1 sent, 2 opened");
    assert.deepEqual(done(progress), [true, true, true, true, true, false]);
    assert.ok(done({ ...progress, connected: true }).every(Boolean));
  });

  test("the answerer sees the same from the other end", () => {
    const progress = after(atFirst("place b"), ["in", "offer"]);
    assert.equal(detail(progress, "Offer and answer"), "offer opened");
    assert.equal(detail(after(progress, ["out", "answer"]), "Offer and answer"), "offer opened, answer sent");
  });

  test("when both offered, the offer that was answered is the one that is told", () => {
    const progress = after(atFirst("place b"), ["out", "offer"], ["in", "offer"], ["out", "answer"]);
    assert.equal(detail(progress, "Offer and answer"), "offer opened, answer sent");
  });

  test("an answer without an offer, of a connection that is history, finishes nothing", () => {
    assert.equal(done(after(atFirst("place a"), ["in", "answer"]))[3], false);
  });

  test("who is connected needs no more addresses, whichever were tried", () => {
    assert.deepEqual(done({ ...atFirst("place a"), connected: true }).slice(3), [true, true, true]);
  });

  for (const kind of ["offer", "pairing"]) {
    test(`another ${kind} begins anew, and place, welcome and peer stay`, () => {
      const start = { ...atFirst("place a"), welcome: "slot a", peerHere: true };
      const connected = { ...after(start, ["out", "offer"], ["in", "answer"], ["in", "candidate"]), connected: true };
      const again = afterMessage(connected, "in", message(kind, null, "n2.1"));
      assert.deepEqual(again, { ...start, pairing: "n2", ...(kind === "offer" ? { offer: "opened", answer: undefined } : {}) });
    });
  }

  test("a later offer of the same connections takes back neither counts nor connection", () => {
    const connected = {
      ...after(atFirst("place a"), ["out", "offer"], ["in", "answer"], ["out", "candidate"], ["in", "candidate"]),
      connected: true,
    };
    const again = after(connected, ["in", "offer"]);
    assert.equal(detail(again, "Addresses to try"), "1 sent, 1 opened");
    assert.equal(detail(again, "Offer and answer"), "offer opened");
    assert.ok(done(again).slice(3).every(Boolean));
  });

  test("what is no part of a handshake changes nothing", () => {
    const progress = after(atFirst("place a"), ["out", "offer"]);
    assert.equal(afterMessage(progress, "in", message("chat")), progress);
  });

  test("what is renewed before the welcome has none", () => {
    assert.deepEqual(renewed(atFirst("place a")), atFirst("place a"));
  });
});

group("words", () => {
  const fingerprint = "AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89";
  const sdp = `v=0\r\na=group:BUNDLE 0\r\na=fingerprint:sha-256 ${fingerprint}\r\n`;

  for (const kind of ["offer", "answer"]) {
    test(`an ${kind} is told by the beginning of its key's fingerprint`, () => {
      assert.equal(describe(message(kind, { type: kind, sdp })), "key fingerprint AB:CD:EF:01:23:45…");
    });
  }

  test("a description without a fingerprint is told to be one", () => {
    for (const value of [{ sdp: "v=0\r\n" }, { sdp: 7 }, {}, null, undefined, "text", 7]) {
      assert.equal(describe(message("offer", value)), "key fingerprint missing");
    }
    assert.equal(describe(message("offer", { sdp: `v=0\r\nb=a=fingerprint:sha-256 ${fingerprint}` })), "key fingerprint missing");
  });

  test("a candidate is told by its transport, address and port", () => {
    const candidate = (text: unknown): string => describe(message("candidate", { candidate: text, sdpMid: "0" }));
    assert.equal(candidate("candidate:1 1 UDP 2122 192.0.2.1 54321 typ host"), "udp 192.0.2.1:54321");
    assert.equal(candidate("candidate:1 1 tcp 1518 2001:db8::1 9 typ host tcptype active"), "tcp 2001:db8::1:9");
    assert.equal(candidate("candidate:1 1 udp 1 x.local 1 typ host"), "udp x.local:1");
  });

  test("the end of candidates is told in both of its forms", () => {
    assert.equal(describe(message("candidate", null)), "no more addresses");
    assert.equal(describe(message("candidate", { candidate: "" })), "no more addresses");
    assert.equal(describe(message("candidate", {})), "no more addresses");
  });

  test("a pairing has words, and what the page doesn't know has none", () => {
    assert.equal(describe(message("pairing", "p")), "a name for this connection");
    assert.equal(describe(message("chat", "marked")), "");
  });

  test("in full a description is its text, and everything else is JSON", () => {
    assert.equal(inFull(message("offer", { type: "offer", sdp: "v=0\r\ns=-\r\n" })), "kind: offer\nnegotiation: n1\n\nv=0\r\ns=-");
    assert.equal(
      inFull(message("candidate", { candidate: "c" })),
      'kind: candidate\nnegotiation: n1\n\n{\n  "candidate": "c"\n}',
    );
    assert.equal(inFull(message("candidate")), "kind: candidate\nnegotiation: n1\n\nnull");
  });

  test("a wait is counted up to whole seconds, and what is over is now", () => {
    assert.deepEqual([8_500, 8_000, 1, 0, -20].map(inSeconds), ["in 9 s", "in 8 s", "in 1 s", "now", "now"]);
    assert.equal(tookSeconds(312), "0.3 s");
  });

  test("what is known of the peer from before is told as such", () => {
    assert.deepEqual([peerInWords("online", true), peerInWords("online", false)], ["connected", "last known: connected"]);
  });

  test("the end says who ended it, and that the chat goes on only where it does", () => {
    const end = (ending: Partial<Ending>): string => {
      const { title, text } = endInWords({ reason: "over", here: false, expired: false, connected: false, ...ending });
      return `${title}: ${text}`;
    };
    assert.match(end({ here: true }), /^The session is over: You ended it, for both sides\.$/);
    assert.match(end({}), /The other side ended it/);
    assert.match(end({ reason: "no_session" }), /The other side ended it, or the relay was restarted/);
    assert.match(end({ expired: true }), /Its time is up\.$/);
    assert.match(end({ reason: "left", here: true }), /did not answer: the other side may still be in it/);
    assert.match(end({ connected: true }), /The chat goes on/);
    assert.match(end({ reason: "replaced", connected: true }), /^Another tab took your place: .*Go on there and close this tab\.$/);
    assert.match(end({ reason: "abuse" }), /\(abuse\)/);
  });

  test("a sealed text shows its beginning and its length", () => {
    assert.deepEqual(shorten(`e1.${"x".repeat(21_900)}`), { head: `e1.${"x".repeat(41)}…`, size: "21,903 bytes" });
    assert.deepEqual(shorten("e1.x"), { head: "e1.x…", size: "4 bytes" });
  });
});

group("links", () => {
  const fields = {
    sessionId: "s",
    ticket: "t",
    secret: "A".repeat(43),
    expiresAt: "2030-01-01T00:00:00.123Z",
  };
  const whole = `#${new URLSearchParams(fields).toString()}`;

  test("a whole link is a place on side b", () => {
    assert.deepEqual(readLink(whole), { slot: "b", ...fields });
  });

  test("a link that is cut anywhere is none", () => {
    for (let length = 0; length < whole.length; length += 1) {
      assert.equal(readLink(whole.slice(0, length)), undefined, whole.slice(0, length));
    }
  });
});

/** What is told of the peer, when frames outside the sequence overtake those in it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerEvent } from "../src/core-types.js";
import type { PresenceState } from "../src/frames.js";
import { Presence } from "../src/presence.js";
import { World } from "./support/world.js";

const peer = (state: PresenceState, generation: number): PeerEvent => ({ type: "peer", state, generation });

test("what is said of a replaced generation outside the sequence is not told", () => {
  const presence = new Presence();
  assert.ok(presence.noticed(peer("online", 1)));
  assert.ok(presence.noticed(peer("away", 1)));
  assert.ok(presence.noticed(peer("online", 2)));
  assert.ok(!presence.noticed(peer("left", 1)));
});

test("an announcement that had to wait comes with its newest state", () => {
  const presence = new Presence();
  presence.noticed(peer("away", 2));
  assert.deepEqual(presence.announced(peer("online", 2)), peer("away", 2));
  assert.deepEqual(presence.announced(peer("online", 3)), peer("online", 3));
  assert.ok(!presence.noticed(peer("online", 2)));
});

test("who was away hears the peer's generations one after the other", () => {
  const presence = new Presence();
  presence.noticed(peer("left", 3));
  assert.deepEqual(presence.announced(peer("online", 2)), peer("online", 2));
  assert.deepEqual(presence.announced(peer("online", 3)), peer("left", 3));
});

test("a relay's late word of the page that reloaded does not make the new one go away", async () => {
  const world = new World();
  const a = world.page("a");
  const first = world.page("b");
  await world.until(() => a.session.peer === "online", "the first page");
  first.session.close();
  await world.until(() => a.session.peer === "left", "its leaving");
  world.page("b");
  await world.until(() => a.session.peer === "online", "the second page");
  world.relay.say("a", { t: "peer", state: "left", gen: 1 });
  world.relay.say("a", { t: "goaway", inMs: 60_000 });
  const goaway = new Promise((heard) => a.session.on("goaway", heard));
  await world.turn();
  await goaway;
  assert.equal(a.session.peer, "online");
  assert.equal(a.log.at(-1), "peer online");
});

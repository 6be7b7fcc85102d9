import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Connection } from "../src/connect.js";
import { moodOf } from "../src/mood.js";
import { SignalSealer } from "../src/signal-seal.js";
import { FakePeerConnection } from "./support/fake-peer-connection.js";
import { SECRET, World, type Page } from "./support/world.js";

/** A page that connects, and what it used. */
class Peer {
  readonly page: Page;
  readonly made: FakePeerConnection[] = [];
  readonly problems: string[] = [];
  readonly connection: Connection;

  /** `wants`: it has something to negotiate: a track, or a data channel. */
  constructor(world: World, slot: "a" | "b", wants: boolean | "channel", once = false) {
    this.page = world.page(slot);
    const make = (): RTCPeerConnection => this.#make(wants);
    this.connection = connect(once ? make() : make, this.page.session);
    this.connection.on("problem", ({ reason }) => this.problems.push(reason));
  }

  get current(): FakePeerConnection {
    return this.connection.peerConnection as unknown as FakePeerConnection;
  }

  get connected(): boolean {
    return this.current.connectionState === "connected" && this.current.signalingState === "stable";
  }

  #make(wants: boolean | "channel"): RTCPeerConnection {
    const fake = new FakePeerConnection();
    this.made.push(fake);
    if (wants === "channel") {
      fake.wantChannel();
    } else if (wants) {
      fake.want();
    }
    return fake as unknown as RTCPeerConnection;
  }
}

function areConnected(a: Peer, b: Peer): boolean {
  const faces = (one: Peer, other: Peer): boolean =>
    one.current.remoteDescription?.sdp.includes(`o=- ${other.current.id} `) === true;
  return a.connected && b.connected && faces(a, b) && faces(b, a);
}

for (const [who, wants] of [
  ["the impolite side", [true, false]],
  ["the polite side", [false, true]],
  ["both sides at once", [true, true]],
] as const) {
  test(`two pages connect when ${who} offers, without a problem`, async () => {
    const world = new World();
    const [a, b] = [new Peer(world, "a", wants[0]), new Peer(world, "b", wants[1])];
    await world.until(() => areConnected(a, b), "the connection");
    assert.deepEqual([a.problems, b.problems], [[], []]);
    assert.deepEqual([a.made.length, b.made.length], [1, 1]);
    assert.equal(a.current.rollbacks, 0);
  });
}

test("at first the polite side answers the other's offer, so that nothing has to be rolled back", async () => {
  const world = new World();
  const [a, b] = [new Peer(world, "a", true), new Peer(world, "b", true)];
  await world.until(() => areConnected(a, b), "the connection");
  assert.deepEqual([a.current.rollbacks, b.current.rollbacks], [0, 0]);
});

for (const later of [0, 40, 60, 5_000]) {
  test(`two pages with the same data channel exchange one offer and one answer, also after a reload (b is ${later} ms late)`, async () => {
    const world = new World();
    const a = new Peer(world, "a", "channel");
    await world.pass(later);
    const first = new Peer(world, "b", "channel");
    await world.until(() => areConnected(a, first), "the connection");
    await world.pass(1_000);
    assert.deepEqual([exchanged(a), exchanged(first)], [["answer"], ["offer"]]);
    const second = new Peer(world, "b", "channel");
    await world.until(() => areConnected(a, second), "the connection after the reload");
    await world.pass(1_000);
    assert.deepEqual([exchanged(a), exchanged(second)], [["answer", "answer"], ["offer"]]);
    assert.deepEqual([a.problems, first.problems, second.problems], [[], [], []]);
  });
}

/** The descriptions that came to this side. */
function exchanged(peer: Peer): string[] {
  return peer.page.messages.map(({ kind }) => kind).filter((kind) => kind === "offer" || kind === "answer");
}

test("of two later offers that cross, the polite side's is rolled back, and made again afterwards", async () => {
  const world = new World();
  const [a, b] = [new Peer(world, "a", true), new Peer(world, "b", true)];
  await world.until(() => areConnected(a, b), "the connection");
  await world.pass(500);
  const answers = b.page.messages.filter(({ kind }) => kind === "answer").length;
  a.current.want();
  b.current.want();
  await world.until(() => b.page.messages.filter(({ kind }) => kind === "answer").length > answers, "its answer");
  assert.deepEqual([a.current.rollbacks, b.current.rollbacks], [0, 1]);
  await world.until(() => areConnected(a, b), "the connection, still");
  assert.deepEqual([a.problems, b.problems], [[], []]);
});

test("an offer made long before the peer comes is answered when it comes", async () => {
  const world = new World();
  const a = new Peer(world, "a", true);
  await world.pass(60_000);
  const b = new Peer(world, "b", false);
  await world.until(() => areConnected(a, b), "the connection");
});

test("the handshake survives sockets that are cut all the time", async () => {
  for (let every = 2; every <= 6; every += 1) {
    const world = new World();
    const [a, b] = [new Peer(world, "a", true), new Peer(world, "b", true)];
    let count = 0;
    world.relay.cutBeforeAck = () => (count += 1) % every === 0;
    await world.until(() => areConnected(a, b), "the connection");
    assert.deepEqual([a.problems, b.problems], [[], []]);
  }
});

for (const slot of ["a", "b"] as const) {
  for (const wants of ["both", "reloading", "staying"] as const) {
    test(`${slot} reloads at any moment of the handshake (${wants} offering): the pages that are there connect`, async () => {
      for (let turns = 0; turns < 24; turns += 1) {
        await reload(slot, wants, turns);
      }
    });
  }
}

test("reloads of both sides among cut sockets end connected", async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const world = new World();
    let count = 0;
    world.relay.cutBeforeAck = () => (count += 1) % (2 + (seed % 9)) === 0;
    const peers = { a: new Peer(world, "a", true), b: new Peer(world, "b", seed % 2 === 0) };
    for (let round = 0; round < 6; round += 1) {
      for (let turn = (seed * (round + 3)) % 11; turn > 0; turn -= 1) {
        await world.turn();
      }
      const slot = (seed + round) % 4 === 0 ? "a" : "b";
      peers[slot].connection.close();
      peers[slot].current.close();
      peers[slot] = new Peer(world, slot, slot === "a" || seed % 2 === 0);
    }
    await world.until(() => areConnected(peers.a, peers.b), `the connection, seed ${seed}`);
    await world.pass(500);
    assert.ok(areConnected(peers.a, peers.b), `still connected, seed ${seed}`);
  }
});

async function reload(slot: "a" | "b", wants: "both" | "reloading" | "staying", turns: number): Promise<void> {
  const world = new World();
  const other = slot === "a" ? "b" : "a";
  const staying = new Peer(world, other, wants !== "reloading");
  const first = new Peer(world, slot, wants !== "staying");
  for (let turn = 0; turn < turns; turn += 1) {
    await world.turn();
  }
  first.connection.close();
  first.current.close();
  const second = new Peer(world, slot, wants !== "staying");
  await world.until(() => areConnected(staying, second), `the connection after a reload at turn ${turns}`);
  await world.pass(1_000);
  assert.ok(areConnected(staying, second));
}

test("a reload after the connection stands replaces the other side's, and says so", async () => {
  const world = new World();
  const [a, first] = [new Peer(world, "a", true), new Peer(world, "b", false)];
  await world.until(() => areConnected(a, first), "the connection");
  const replaced = a.connection.next("replaced");
  const second = new Peer(world, "b", false);
  await world.until(() => areConnected(a, second), "the second connection");
  assert.equal((await replaced).peerConnection, a.connection.peerConnection);
  assert.equal(a.made.length, 2);
  assert.equal(a.made[0]?.connectionState, "closed");
  assert.equal(first.page.log.at(-1), "closed replaced");
});

test("a single RTCPeerConnection can't follow a reload, and says so", async () => {
  const world = new World();
  const [a, first] = [new Peer(world, "a", true, true), new Peer(world, "b", false)];
  await world.until(() => areConnected(a, first), "the connection");
  new Peer(world, "b", false);
  await world.until(() => a.problems.length > 0, "the problem");
  assert.deepEqual(a.problems, ["needs_new_connection"]);
});

function offerOf(id: number, version = 1): unknown {
  const sdp = `v=0\r\no=- ${id} ${version} IN IP4 127.0.0.1\r\na=ice-ufrag:u${id}\r\na=offer:${id}.${version}\r\n`;
  return { type: "offer", sdp };
}

test("an offer of another RTCPeerConnection of the same page gets a new one, a later one of the same doesn't", async () => {
  const world = new World();
  const b = new Peer(world, "b", false);
  const a = world.page("a");
  for (const [negotiation, value] of [
    ["n1", offerOf(901)],
    ["n2", offerOf(901, 2)],
    ["n3", offerOf(902)],
  ] as const) {
    await a.session.send({ kind: "offer", negotiation, value });
  }
  await world.until(() => a.messages.filter(({ kind }) => kind === "answer").length === 3, "three answers");
  assert.deepEqual([b.made.length, b.problems], [2, []]);
});

test("a page load that the relay doesn't tell of is noticed by its sealing, and the offer made anew", async () => {
  const world = new World();
  const a = new Peer(world, "a", true);
  const b = new Peer(world, "b", false);
  await world.until(() => areConnected(a, b), "the connection");
  const other = new SignalSealer({ secret: SECRET, sessionId: "session" }, "b");
  const candidate = (await other.seal('{"kind":"candidate","negotiation":"x","value":null}'))!;
  world.relay.tamper = (to, frame) => [to === "a" && frame.t === "msg" ? { ...frame, d: candidate } : frame];
  await b.page.say("whatever");
  await world.until(() => a.made.length === 2, "a new connection");
});

test("a single RTCPeerConnection follows a reload before the first answer", async () => {
  const world = new World();
  const a = new Peer(world, "a", true, true);
  const quiet = world.page("b");
  await world.until(() => quiet.messages.some(({ kind }) => kind === "offer"), "the offer");
  await world.pass(1_000);
  const b = new Peer(world, "b", false);
  await world.until(() => areConnected(a, b), "the connection");
  assert.deepEqual([a.problems, a.made.length], [[], 1]);
});

test("an answer to an older negotiation is discarded", async () => {
  const world = new World();
  const a = new Peer(world, "a", true);
  const b = world.page("b");
  await world.until(() => b.messages.some(({ kind }) => kind === "offer"), "the offer");
  const value = { type: "answer", sdp: "v=0\r\no=- 99 1 IN IP4 127.0.0.1\r\n" };
  await b.session.send({ kind: "answer", negotiation: "older", value });
  await world.until(() => a.problems.length > 0, "the report");
  assert.deepEqual(a.problems, ["stale_answer"]);
  assert.equal(a.current.signalingState, "have-local-offer");
});

test("candidates wait for their description, those of another are dropped, and null ends them", async () => {
  const world = new World();
  const b = new Peer(world, "b", false);
  const a = world.page("a");
  const candidate = (ufrag: string): unknown => ({ candidate: "candidate:1", sdpMid: "0", usernameFragment: ufrag });
  await a.session.send({ kind: "candidate", negotiation: "older", value: candidate("old") });
  await a.session.send({ kind: "candidate", negotiation: "n1", value: candidate("u1") });
  await a.session.send({ kind: "candidate", negotiation: "n1", value: null });
  const sdp = "v=0\r\no=- 77 1 IN IP4 127.0.0.1\r\na=ice-ufrag:u1\r\na=offer:77.1\r\n";
  await a.session.send({ kind: "offer", negotiation: "n1", value: { type: "offer", sdp } });
  await world.until(() => b.connected, "the connection");
  assert.deepEqual(b.problems, []);
  await world.until(() => a.messages.some(({ kind, value }) => kind === "candidate" && value === null), "the end");
  assert.ok(a.messages.every(({ negotiation }) => negotiation === "n1"));
});

test("what is no description or candidate is reported, and kinds of the application's own are left alone", async () => {
  const world = new World();
  const b = new Peer(world, "b", false);
  const a = world.page("a");
  for (const [kind, value] of [
    ["offer", null],
    ["offer", { type: "answer", sdp: "" }],
    ["answer", { type: "answer", sdp: 1 }],
    ["candidate", 5],
    ["candidate", {}],
    ["chat", "hello"],
  ] as const) {
    await a.session.send({ kind, negotiation: "n", value });
  }
  await world.until(() => b.page.messages.length === 6, "all of them");
  await world.until(() => b.problems.length === 5, "the reports");
  assert.deepEqual(new Set(b.problems), new Set(["malformed"]));
});

test("a flood of candidates without a description is bounded", async () => {
  const world = new World();
  const b = new Peer(world, "b", false);
  const a = world.page("a");
  for (let at = 0; at < 300; at += 1) {
    await a.session.send({ kind: "candidate", negotiation: "n", value: null });
    if (at % 100 === 0) {
      await world.until(() => a.session.pending === 0, "acknowledgements");
    }
  }
  await world.until(() => b.page.messages.length === 300, "all of them");
  await world.pass(500);
  assert.equal(b.problems.length, 300 - 256);
});

test("the relay's TURN servers are there for the first gathering, beside the application's, and refreshed", async () => {
  const world = new World();
  world.relay.iceServers = [{ urls: "turn:relay", username: "1", credential: "x" }];
  const [a, b] = [new Peer(world, "a", true), new Peer(world, "b", false)];
  a.current.configuration = { iceServers: [{ urls: "stun:own" }] };
  await world.until(() => areConnected(a, b), "the connection");
  assert.deepEqual(a.current.gatherings[0], [{ urls: "stun:own" }, ...(world.relay.iceServers as RTCIceServer[])]);
  world.relay.iceServers = [{ urls: "turn:relay", username: "2", credential: "y" }];
  a.current.fail();
  await world.until(() => areConnected(a, b), "the connection after an ICE restart");
  await world.until(() => a.current.configuration.iceServers?.[1]?.username === "2", "fresh credentials");
  assert.equal(a.current.configuration.iceServers?.length, 2);
  assert.equal(a.made.length, 1);
});

test("after close nothing is negotiated any more", async () => {
  const world = new World();
  const [a, b] = [new Peer(world, "a", true), new Peer(world, "b", true)];
  a.connection.close();
  await world.pass(5_000);
  assert.ok(!a.connected && !b.connected);
  assert.equal(a.page.session.state, "live");
});

test("the mood says whether a TURN server carries the connection", async () => {
  const stats = (type: string): Map<string, unknown> =>
    new Map<string, unknown>([
      ["t", { id: "t", type: "transport", selectedCandidatePairId: "p" }],
      ["p", { id: "p", type: "candidate-pair", localCandidateId: "l", remoteCandidateId: "r" }],
      ["l", { id: "l", type: "local-candidate", candidateType: "host" }],
      ["r", { id: "r", type: "remote-candidate", candidateType: type }],
    ]);
  const fake = (connectionState: string, type: string): RTCPeerConnection =>
    ({ connectionState, getStats: () => Promise.resolve(stats(type)) }) as unknown as RTCPeerConnection;
  assert.equal(await moodOf(fake("connected", "srflx")), "direct");
  assert.equal(await moodOf(fake("connected", "relay")), "relayed");
  assert.equal(await moodOf(fake("failed", "host")), "failed");
});

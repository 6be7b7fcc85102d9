/** The picture on top: this tab, the relay, the other tab, and what is between them. */

import type { ConnectionState, PeerEvent } from "@sovereignfs/relay-client";
import { byId } from "./dom.js";
import { inSeconds, peerInWords } from "./words.js";

/** A count that is shown in seconds is looked at more often. */
const COUNT_MS = 250;

/** How a line is drawn. */
type Line = "idle" | "busy" | "live" | "broken";

type Presence = PeerEvent["state"];

const OWN: Record<ConnectionState, readonly [Line, string]> = {
  new: ["idle", "not connected"],
  connecting: ["busy", "dialing"],
  live: ["live", "connected"],
  waiting: ["broken", "cut"],
  closed: ["idle", "over"],
};

const PEER: Record<Presence, Line> = { absent: "idle", online: "live", away: "broken", left: "idle" };

/** Who is who. */
export function nameTabs(slot: "a" | "b"): void {
  const [own, other] = slot === "a" ? ["A", "B"] : ["B", "A"];
  byId("own-name").textContent = `Peer ${own}`;
  byId("own-state").textContent = "this tab";
  byId("peer-name").textContent = `Peer ${other}`;
  byId("peer-state").textContent = "the other tab";
  byId("badge").textContent = `You are peer ${own}`;
  byId("badge").hidden = false;
  document.title = `Peer ${own} · Sovereign Relay playground`;
}

let counting: ReturnType<typeof setInterval> | undefined;

/** Our line to the relay. While it waits, the label counts down to the next dial. */
export function showOwn(state: ConnectionState, retryInMs?: number): void {
  clearInterval(counting);
  const [line, words] = OWN[state];
  if (state !== "waiting" || retryInMs === undefined) {
    draw("own-wire", line, words);
    return;
  }
  const dialsAt = performance.now() + retryInMs;
  const count = (): void => {
    draw("own-wire", line, `${words}, dials again ${inSeconds(dialsAt - performance.now())}`);
  };
  count();
  counting = setInterval(count, COUNT_MS);
}

/** The peer's line: as far as the relay tells, or told while we heard it. */
export function showPeer(presence: Presence, own: ConnectionState): void {
  if (own === "closed") {
    draw("peer-wire", "idle", "over");
  } else {
    draw("peer-wire", own === "live" ? PEER[presence] : "idle", peerInWords(presence, own === "live"));
  }
}

/** The line that doesn't touch the relay. */
export function showDirect(isOpen: boolean, state: RTCPeerConnectionState): void {
  if (isOpen) {
    draw("direct", "live", "data channel open, encrypted from tab to tab");
  } else {
    const isBusy = state === "connecting";
    draw("direct", isBusy ? "busy" : "idle", isBusy ? "finding a direct way" : "no direct connection yet");
  }
}

function draw(id: string, line: Line, words: string): void {
  byId(id).dataset["state"] = line;
  byId(`${id}-label`).textContent = words;
}

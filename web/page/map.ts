/** The picture on top: this tab, the relay, the other tab, and what is between them. */

import type { ConnectionState, PeerEvent } from "@sovereignfs/relay-client";
import { byId } from "./dom.js";

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

const PEER: Record<Presence, readonly [Line, string]> = {
  absent: ["idle", "not there yet"],
  online: ["live", "connected"],
  away: ["broken", "lost, may resume"],
  left: ["idle", "left"],
};

/** Who is who. */
export function nameTabs(slot: "a" | "b"): void {
  const [own, other] = slot === "a" ? ["A", "B"] : ["B", "A"];
  byId("own-name").textContent = `Peer ${own}`;
  byId("own-state").textContent = "this tab";
  byId("peer-name").textContent = `Peer ${other}`;
  byId("peer-state").textContent = "the other tab";
  byId("badge").textContent = `You are peer ${own}`;
  byId("badge").hidden = false;
}

/** Our line to the relay. */
export function showOwn(state: ConnectionState, retryInMs?: number): void {
  const [line, words] = OWN[state];
  const wait = state === "waiting" && retryInMs !== undefined ? `, dials again in ${seconds(retryInMs)}` : "";
  draw("own-wire", line, words + wait);
}

/** The peer's line, as far as the relay tells. */
export function showPeer(presence: Presence): void {
  draw("peer-wire", ...PEER[presence]);
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

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

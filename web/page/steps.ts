/** The handshake as a list of steps: a pure account of what has happened, and its view. */

import type { SignalMessage } from "@sovereignfs/relay-client";
import { byId, make } from "./dom.js";

/** What has happened so far. */
export interface Progress {
  readonly place: string;
  readonly welcome?: string;
  readonly peerHere: boolean;
  /** Which `RTCPeerConnection`s negotiate: another one begins anew. */
  readonly pairing?: string;
  readonly offer?: "sent" | "opened";
  readonly answer?: "sent" | "opened" | undefined;
  readonly candidatesSent: number;
  readonly candidatesOpened: number;
  readonly connected: boolean;
}

/** Nothing but a place in a session. */
export function atFirst(place: string): Progress {
  return { place, peerHere: false, candidatesSent: 0, candidatesOpened: 0, connected: false };
}

/** The same, after a message. */
export function afterMessage(before: Progress, direction: "out" | "in", message: SignalMessage): Progress {
  const { kind } = message;
  const done = direction === "out" ? "sent" : "opened";
  switch (kind) {
    case "pairing":
      return paired(before, message);
    case "offer":
      return { ...paired(before, message), offer: done, answer: undefined };
    case "answer":
      return { ...before, answer: done };
    case "candidate":
      return direction === "out"
        ? { ...before, candidatesSent: before.candidatesSent + 1 }
        : { ...before, candidatesOpened: before.candidatesOpened + 1 };
    default:
      return before;
  }
}

/** A later offer of the same connections, to restart ICE for instance, takes nothing back. */
function paired(before: Progress, { negotiation }: SignalMessage): Progress {
  const [pairing = ""] = negotiation.split(".");
  return pairing === before.pairing ? before : { ...renewed(before), pairing };
}

/** A new connection is negotiated; the one before is history. */
export function renewed({ place, welcome, peerHere }: Progress): Progress {
  return { ...atFirst(place), ...(welcome === undefined ? {} : { welcome }), peerHere };
}

interface Step {
  readonly title: string;
  readonly detail: string;
  readonly isDone: boolean;
}

/** Both sides may have offered; the offer that counts is the one that is answered. */
const ANSWERED = { sent: "offer opened, answer sent", opened: "offer sent, answer opened" };

/** The steps, in order. */
export function steps(progress: Progress): Step[] {
  const { place, welcome, peerHere, offer, answer, candidatesSent, candidatesOpened, connected } = progress;
  const descriptions = answer === undefined ? offer && `offer ${offer}` : ANSWERED[answer];
  const candidates = `${candidatesSent} sent, ${candidatesOpened} opened`;
  return [
    { title: "A place in a session", detail: place, isDone: true },
    { title: "Hello to the relay", detail: welcome ?? "dialing", isDone: welcome !== undefined },
    { title: "The other side is here", detail: peerHere ? "both have said hello" : "not yet", isDone: peerHere },
    {
      title: "Offer and answer",
      detail: descriptions ?? "who speaks which keys, sealed",
      isDone: connected || (offer !== undefined && answer !== undefined),
    },
    {
      title: "Addresses to try",
      detail: candidatesSent + candidatesOpened > 0 ? candidates : "ICE candidates, sealed",
      isDone: connected || (candidatesSent > 0 && candidatesOpened > 0),
    },
    {
      title: "Connected",
      detail: connected ? "the relay is out of the way" : "a data channel from tab to tab",
      isDone: connected,
    },
  ];
}

/** Shows them, and which one is next. */
export function showSteps(progress: Progress): void {
  const all = steps(progress);
  const next = all.findIndex(({ isDone }) => !isDone);
  const items = all.map(({ title, detail, isDone }, index) => {
    const state = isDone ? "done" : index === next ? "next" : "later";
    const item = make("li", state, make("b", "", title), make("span", "", detail));
    if (state === "next") {
      item.setAttribute("aria-current", "step");
    }
    const word = { done: "done: ", next: "now: ", later: "" }[state];
    item.prepend(make("span", "unseen", word));
    return item;
  });
  byId("steps").replaceChildren(...items);
}

/** Signaling messages in words a person can take in. */

import type { CloseReason, PeerEvent, SignalMessage } from "@sovereignfs/relay-client";

/** A message in a few words. */
export function describe({ kind, value }: SignalMessage): string {
  switch (kind) {
    case "offer":
    case "answer":
      return `key fingerprint ${fingerprint(field(value, "sdp"))}`;
    case "candidate":
      return value === null ? "no more addresses" : address(field(value, "candidate"));
    case "pairing":
      return "a name for this connection";
    default:
      return "";
  }
}

/** Who gives way when both offer at once, which is all that the roles are about. */
export function roleInWords(role: "impolite" | "polite"): string {
  return role === "impolite" ? "impolite (if offers cross, its own stands)" : "polite (if offers cross, it yields)";
}

/** How long until a moment that is so many milliseconds away. */
export function inSeconds(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  return seconds > 0 ? `in ${seconds} s` : "now";
}

/** How long something took. */
export function tookSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** The other side, as far as the relay told; `isFresh` while it still can tell. */
export function peerInWords(presence: PeerEvent["state"], isFresh: boolean): string {
  return isFresh ? PEER[presence] : `last known: ${PEER[presence]}`;
}

const PEER: Record<PeerEvent["state"], string> = {
  absent: "not there yet",
  online: "connected",
  away: "lost, may resume",
  left: "left",
};

/** What the end of a session is told by. */
export interface Ending {
  readonly reason: CloseReason;
  /** It was ended in this tab. */
  readonly here: boolean;
  /** Its time is up. */
  readonly expired: boolean;
  /** The data channel is open. */
  readonly connected: boolean;
}

/** The end of a session, and what it leaves. */
export function endInWords(ending: Ending): { readonly title: string; readonly text: string } {
  if (ending.reason === "replaced") {
    return {
      title: "Another tab took your place",
      text: "It has this side of the session now, and a new connection to the other side. Go on there and close this tab.",
    };
  }
  const stays = ending.connected ? " The chat goes on: it never needed the relay." : "";
  return { title: "The session is over", text: whyOver(ending) + stays };
}

function whyOver({ reason, here, expired }: Ending): string {
  if (reason !== "over" && reason !== "no_session") {
    return REASONS[reason] ?? `The relay closed it (${reason}).`;
  }
  if (here) {
    return "You ended it, for both sides.";
  }
  return expired ? "Its time is up." : "The other side ended it, or the relay was restarted.";
}

const REASONS: Partial<Record<CloseReason, string>> = {
  left: "You left it, but the playground did not answer: the other side may still be in it.",
  bad_ticket: "The link is wrong or too old.",
  unreachable: "The relay was out of reach for longer than a session lives.",
};

/** All of a message, to be read. */
export function inFull({ kind, negotiation, value }: SignalMessage): string {
  const sdp = field(value, "sdp");
  const head = `kind: ${kind}\nnegotiation: ${negotiation}\n\n`;
  return head + (sdp === "" ? JSON.stringify(value, null, 2) : sdp.trimEnd());
}

/** Enough of an opaque text to see that it is one, and how long it is. */
export function shorten(sealed: string): { readonly head: string; readonly size: string } {
  return { head: `${sealed.slice(0, HEAD_CHARS)}…`, size: `${sealed.length.toLocaleString("en")} bytes` };
}

const HEAD_CHARS = 44;

function field(value: unknown, name: string): string {
  const found = (value as Record<string, unknown> | null)?.[name];
  return typeof found === "string" ? found : "";
}

/** The beginning of the DTLS fingerprint: what a relay would have to swap to listen in. */
function fingerprint(sdp: string): string {
  const found = /^a=fingerprint:\S+ ((?:[0-9A-F]{2}:){5}[0-9A-F]{2})/m.exec(sdp)?.[1];
  return found === undefined ? "missing" : `${found}…`;
}

/** Foundation, component, transport, priority, address, port (RFC 8839, 5.1). */
function address(candidate: string): string {
  const [, , transport = "", , host = "", port = ""] = candidate.split(" ");
  return host === "" ? "no more addresses" : `${transport.toLowerCase()} ${host}:${port}`;
}

/**
 * Frames of `sovereign.signal.v1`: JSON text, one object each. Parsing is strict in the fields we know and blind to
 * those we don't. Nothing here decides anything.
 */

import type { Slot } from "./signal-seal.js";

/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "sovereign.signal.v1";
/** Longest frame read: the most that an operator may let a relay take. */
const FRAME_CHARS_MAX = 1024 * 1024;

/** Perfect negotiation: on a collision of offers the polite side gives way. */
export type Role = "impolite" | "polite";

/** The peer: never seen, connected, lost for the moment, or gone. */
export type PresenceState = "absent" | "online" | "away" | "left";

/** How the session went, as told when leaving. It feeds a counter at the relay and nothing else. */
export type Mood = "direct" | "relayed" | "failed" | "cancelled";

/** Why the relay did not store a message. It will, later. */
export type RefusalCode = "rate_limited" | "mailbox_full" | "unavailable";

/** What the relay holds a slot to. */
export interface SessionLimits {
  readonly frameBytes: number;
  readonly mailboxMessages: number;
  readonly mailboxBytes: number;
  readonly messagesPerSecond: number;
  readonly burst: number;
}

/** Those of a relay whose operator changed nothing; they hold until a welcome brings the relay's own. */
export const DEFAULT_LIMITS: SessionLimits = {
  frameBytes: 32 * 1024,
  mailboxMessages: 256,
  mailboxBytes: 512 * 1024,
  messagesPerSecond: 20,
  burst: 60,
};

/** A STUN or TURN server in the shape that `RTCPeerConnection` takes. */
export interface IceServer {
  readonly urls: string | string[];
  readonly username?: string;
  readonly credential?: string;
}

export interface WelcomeFrame {
  readonly t: "welcome";
  readonly slot: Slot;
  readonly role: Role;
  readonly gen: number;
  readonly next: number;
  readonly base: number;
  readonly peer: { readonly state: PresenceState; readonly gen: number };
  readonly expiresAt: string;
  readonly limits: SessionLimits;
  readonly iceServers: readonly IceServer[];
}

/** What the relay says. */
export type ServerFrame =
  | WelcomeFrame
  | { readonly t: "ack"; readonly n: number }
  | { readonly t: "msg"; readonly seq: number; readonly gen: number; readonly d: string }
  | { readonly t: "peer"; readonly state: PresenceState; readonly gen: number; readonly seq: number | undefined }
  | { readonly t: "ping" }
  | { readonly t: "pong" }
  | { readonly t: "ice"; readonly iceServers: readonly IceServer[]; readonly expiresAt: string | undefined }
  | { readonly t: "goaway"; readonly inMs: number }
  | { readonly t: "err"; readonly code: RefusalCode; readonly n: number | undefined; readonly retryMs: number };

/** What a client says. */
export type ClientFrame =
  | {
      readonly t: "hello";
      readonly v: 1;
      readonly ticket: string;
      readonly cid: string;
      readonly try: number;
      readonly last: number;
    }
  | { readonly t: "msg"; readonly n: number; readonly d: string }
  | { readonly t: "ack"; readonly seq: number }
  | { readonly t: "ping" }
  | { readonly t: "pong" }
  | { readonly t: "ice" }
  | { readonly t: "bye"; readonly mood: Mood };

/** The text of a frame. */
export function writeFrame(frame: ClientFrame): string {
  return JSON.stringify(frame);
}

/** The frame, `"unknown"` for a type of a later version, or `"malformed"`. */
export function readFrame(text: unknown): ServerFrame | "unknown" | "malformed" {
  if (typeof text !== "string" || text.length > FRAME_CHARS_MAX) {
    return "malformed";
  }
  const fields = parseObject(text);
  if (typeof fields?.["t"] !== "string") {
    return "malformed";
  }
  const read = READERS.get(fields["t"]);
  return read === undefined ? "unknown" : (read(fields) ?? "malformed");
}

type Fields = Record<string, unknown>;
type Reader = (fields: Fields) => ServerFrame | undefined;

const READERS = new Map<string, Reader>([
  ["welcome", readWelcome],
  ["ack", ({ n }) => (isCount(n) ? { t: "ack", n } : undefined)],
  ["msg", readMessage],
  ["peer", readPeer],
  ["ping", () => ({ t: "ping" })],
  ["pong", () => ({ t: "pong" })],
  ["ice", readIce],
  ["goaway", ({ inMs }) => (isCount(inMs) ? { t: "goaway", inMs } : undefined)],
  ["err", readRefusal],
]);

function readWelcome(fields: Fields): ServerFrame | undefined {
  const { gen, next, base, expiresAt } = fields;
  const place = readPlace(fields);
  const [peer, limits] = [readPresence(fields["peer"]), readLimits(fields["limits"])];
  const iceServers = readIceServers(fields["iceServers"] ?? []);
  if (place === undefined || peer === undefined || limits === undefined || iceServers === undefined) {
    return undefined;
  }
  const counted = isCount(gen) && isCount(next) && next > 0 && isCount(base);
  return counted && typeof expiresAt === "string"
    ? { t: "welcome", ...place, gen, next, base, peer, expiresAt, limits, iceServers }
    : undefined;
}

/** The role hangs on the slot: a relay that says otherwise would have both sides give way, or neither. */
function readPlace({ slot, role }: Fields): { slot: Slot; role: Role } | undefined {
  if (slot === "a" && role === "impolite") {
    return { slot, role };
  }
  return slot === "b" && role === "polite" ? { slot, role } : undefined;
}

function readMessage({ seq, gen, d }: Fields): ServerFrame | undefined {
  const counted = isCount(seq) && seq > 0 && isCount(gen);
  return counted && typeof d === "string" ? { t: "msg", seq, gen, d } : undefined;
}

function readPeer(fields: Fields): ServerFrame | undefined {
  const presence = readPresence(fields);
  const seq = fields["seq"] ?? undefined;
  const sequenced = seq === undefined || (isCount(seq) && seq > 0);
  return presence !== undefined && sequenced ? { t: "peer", ...presence, seq } : undefined;
}

function readIce({ iceServers, expiresAt }: Fields): ServerFrame | undefined {
  const servers = readIceServers(iceServers ?? []);
  const until = expiresAt ?? undefined;
  const wellFormed = until === undefined || typeof until === "string";
  return servers !== undefined && wellFormed ? { t: "ice", iceServers: servers, expiresAt: until } : undefined;
}

function readRefusal({ code, n, retryMs }: Fields): ServerFrame | undefined {
  const from = n ?? undefined;
  if (code !== "rate_limited" && code !== "mailbox_full" && code !== "unavailable") {
    return undefined;
  }
  const counted = (from === undefined || isCount(from)) && isCount(retryMs);
  return counted ? { t: "err", code, n: from, retryMs } : undefined;
}

function readPresence(value: unknown): { state: PresenceState; gen: number } | undefined {
  if (!isObject(value)) {
    return undefined;
  }
  const state = value["state"];
  const gen = value["gen"] ?? 0;
  const known = state === "absent" || state === "online" || state === "away" || state === "left";
  return known && isCount(gen) ? { state, gen } : undefined;
}

/** The limits of a session, as welcome and the sessions API give them. */
export function readLimits(value: unknown): SessionLimits | undefined {
  if (!isObject(value)) {
    return undefined;
  }
  const { frameBytes, mailboxMessages, mailboxBytes, messagesPerSecond, burst } = value;
  const counted = isCount(frameBytes) && isCount(mailboxMessages) && isCount(mailboxBytes);
  return counted && isCount(messagesPerSecond) && isCount(burst)
    ? { frameBytes, mailboxMessages, mailboxBytes, messagesPerSecond, burst }
    : undefined;
}

function readIceServers(value: unknown): IceServer[] | undefined {
  return Array.isArray(value) && value.every(isIceServer) ? value : undefined;
}

function isIceServer(value: unknown): value is IceServer {
  if (!isObject(value)) {
    return false;
  }
  const { urls, username, credential } = value;
  const addressed = typeof urls === "string" || (Array.isArray(urls) && urls.every((url) => typeof url === "string"));
  return addressed && isOptionalText(username) && isOptionalText(credential);
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    // Malformed, or nested deeper than the stack.
    return undefined;
  }
}

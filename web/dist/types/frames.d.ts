/**
 * Frames of `sovereign.signal.v1`: JSON text, one object each. Parsing is strict in the fields we know and blind to
 * those we don't. Nothing here decides anything.
 */
import type { Slot } from "./signal-seal.js";
/** The WebSocket subprotocol. */
export declare const SUBPROTOCOL = "sovereign.signal.v1";
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
export declare const DEFAULT_LIMITS: SessionLimits;
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
    readonly peer: {
        readonly state: PresenceState;
        readonly gen: number;
    };
    readonly expiresAt: string;
    readonly limits: SessionLimits;
    readonly iceServers: readonly IceServer[];
}
/** What the relay says. */
export type ServerFrame = WelcomeFrame | {
    readonly t: "ack";
    readonly n: number;
} | {
    readonly t: "msg";
    readonly seq: number;
    readonly gen: number;
    readonly d: string;
} | {
    readonly t: "peer";
    readonly state: PresenceState;
    readonly gen: number;
    readonly seq: number | undefined;
} | {
    readonly t: "ping";
} | {
    readonly t: "pong";
} | {
    readonly t: "ice";
    readonly iceServers: readonly IceServer[];
    readonly expiresAt: string | undefined;
} | {
    readonly t: "goaway";
    readonly inMs: number;
} | {
    readonly t: "err";
    readonly code: RefusalCode;
    readonly n: number | undefined;
    readonly retryMs: number;
};
/** What a client says. */
export type ClientFrame = {
    readonly t: "hello";
    readonly v: 1;
    readonly ticket: string;
    readonly cid: string;
    readonly try: number;
    readonly last: number;
} | {
    readonly t: "msg";
    readonly n: number;
    readonly d: string;
} | {
    readonly t: "ack";
    readonly seq: number;
} | {
    readonly t: "ping";
} | {
    readonly t: "pong";
} | {
    readonly t: "ice";
} | {
    readonly t: "bye";
    readonly mood: Mood;
};
/** The text of a frame. */
export declare function writeFrame(frame: ClientFrame): string;
/** The frame, `"unknown"` for a type of a later version, or `"malformed"`. */
export declare function readFrame(text: unknown): ServerFrame | "unknown" | "malformed";
/** The limits of a session, as welcome and the sessions API give them. */
export declare function readLimits(value: unknown): SessionLimits | undefined;

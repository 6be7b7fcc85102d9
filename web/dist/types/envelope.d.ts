/** The message inside the sealing, and the choice between sealing and not. The session calls it. */
import type { ViolationReason } from "./core-types.js";
import { type Slot } from "./signal-seal.js";
/** One signaling message. The relay sees none of it. */
export interface SignalMessage {
    /** `offer`, `answer`, `candidate`, or a kind of the application's own. */
    readonly kind: string;
    /** The negotiation it belongs to; empty where there is none. */
    readonly negotiation: string;
    /** Anything that JSON can hold. */
    readonly value: unknown;
}
/** A message that came, with what sealing says of its origin. */
export interface Received extends SignalMessage {
    /** Which of the peer's page loads sent it, counted from 1. Another one knows nothing of what this one sent. */
    readonly load: number;
}
export type Unwrapped = {
    readonly ok: true;
    readonly message: Received;
    readonly missing: number;
} | {
    readonly ok: false;
    readonly reason: ViolationReason;
};
/** Between messages and what the relay carries. */
export interface Envelope {
    /** `undefined` when the message would be longer than this. */
    wrap(text: string, longest: number): Promise<string | undefined>;
    /** `generation` is what the relay says of the sender. */
    unwrap(d: string, generation: number): Promise<Unwrapped>;
}
/** JSON of a message, or `undefined` when it can't be written. */
export declare function writeMessage({ kind, negotiation, value }: SignalMessage): string | undefined;
/** Sealed end to end. */
export declare function sealedEnvelope(secret: Uint8Array, sessionId: string, slot: Slot): Envelope;
/** As it is, for sessions where both sides want that. The relay can read and change everything. */
export declare function plainEnvelope(): Envelope;

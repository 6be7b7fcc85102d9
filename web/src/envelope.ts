/** The message inside the sealing, and the choice between sealing and not. The session calls it. */

import type { ViolationReason } from "./core-types.js";
import { fromUtf8, utf8 } from "./bytes.js";
import { SignalOpener, SignalSealer, sealedLength, type Slot } from "./signal-seal.js";

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

export type Unwrapped =
  | { readonly ok: true; readonly message: Received; readonly missing: number }
  | { readonly ok: false; readonly reason: ViolationReason };

/** Between messages and what the relay carries. */
export interface Envelope {
  /** `undefined` when the message would be longer than this. */
  wrap(text: string, longest: number): Promise<string | undefined>;
  /** `generation` is what the relay says of the sender. */
  unwrap(d: string, generation: number): Promise<Unwrapped>;
}

/** JSON of a message, or `undefined` when it can't be written. */
export function writeMessage({ kind, negotiation, value }: SignalMessage): string | undefined {
  try {
    return JSON.stringify({ kind, negotiation, value: value ?? null });
  } catch {
    // The cause would quote content.
    return undefined;
  }
}

/** Sealed end to end. */
export function sealedEnvelope(secret: Uint8Array, sessionId: string, slot: Slot): Envelope {
  const sealer = new SignalSealer({ secret, sessionId }, slot);
  const opener = new SignalOpener({ secret, sessionId }, slot);
  return {
    async wrap(text, longest) {
      // Looked at before: a message that is sealed and not sent would be missed by the peer.
      return (sealedLength(text) ?? Infinity) > longest ? undefined : sealer.seal(text);
    },
    async unwrap(d) {
      const opened = await opener.open(d);
      if (!opened.ok) {
        return { ok: false, reason: opened.rejection };
      }
      return unwrapped(opened.text, opened.load, opened.missing);
    },
  };
}

/** As it is, for sessions where both sides want that. The relay can read and change everything. */
export function plainEnvelope(): Envelope {
  return {
    // A lone surrogate would be refused by the relay. What is too long the outbox tells, by its length in JSON.
    wrap: (text) => Promise.resolve(fromUtf8(utf8(text))),
    unwrap: (d, generation) => Promise.resolve(unwrapped(d, generation, 0)),
  };
}

function unwrapped(text: string, load: number, missing: number): Unwrapped {
  const message = readMessage(text, load);
  return message === undefined ? { ok: false, reason: "malformed_message" } : { ok: true, message, missing };
}

function readMessage(text: string, load: number): Received | undefined {
  try {
    const fields = JSON.parse(text) as Partial<Record<keyof SignalMessage, unknown>> | null;
    const { kind, negotiation, value } = fields ?? {};
    return typeof kind === "string" && typeof negotiation === "string"
      ? { kind, negotiation, value: value ?? null, load }
      : undefined;
  } catch {
    return undefined;
  }
}

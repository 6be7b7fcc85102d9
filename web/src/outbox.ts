/**
 * What we send, until the relay has stored it. Pure; the core calls it.
 *
 * Each message has a number n. At most {@link WINDOW} are under way. The relay acknowledges up to an n; or refuses
 * from an n on, then nothing goes out until the delay is over, and everything from n is sent again; or names the n
 * that it expects, in `welcome`.
 *
 * Invariant: numbers are sent in order on each connection, and one that was acknowledged is never needed again.
 */

import { utf8 } from "./bytes.js";
import { writeFrame, type SessionLimits } from "./frames.js";

/** What the relay keeps for a receiver: more would only wait here instead of there. */
export const MESSAGES_MAX = 256;
/** Frames under way without an acknowledgement. Bounds what a refusal makes us send again. */
const WINDOW = 32;
const FRAME_BYTES = 32 * 1024;

/** Why a message was not taken. */
export type OutboxFault = "outbox_full" | "too_large";

export class Outbox {
  readonly #waiting: { readonly n: number; readonly frame: string }[] = [];
  #lastNumber = 0;
  #sentTo = 0;
  #heldUntil = -Infinity;
  #frameBytes = FRAME_BYTES;

  /** Messages that the relay has not acknowledged. */
  get size(): number {
    return this.#waiting.length;
  }

  /** When something held back may go. */
  get deadline(): number {
    return this.#waiting.length > 0 && this.#heldUntil > -Infinity ? this.#heldUntil : Infinity;
  }

  /** Takes a message, or says why not. */
  push(d: string): OutboxFault | undefined {
    const n = this.#lastNumber + 1;
    const frame = writeFrame({ t: "msg", n, d });
    if (utf8(frame).length > this.#frameBytes) {
      return "too_large";
    }
    if (this.#waiting.length >= MESSAGES_MAX) {
      return "outbox_full";
    }
    this.#lastNumber = n;
    this.#waiting.push({ n, frame });
    return undefined;
  }

  /** A new connection, on which the relay expects `next`. False when that can't be. */
  welcomed(next: number, limits: SessionLimits): boolean {
    if (next <= this.#storedTo || next > this.#lastNumber + 1) {
      return false;
    }
    this.#frameBytes = limits.frameBytes;
    this.#heldUntil = -Infinity;
    this.#drop(next - 1);
    this.#sentTo = next - 1;
    return true;
  }

  /** All up to `n` is stored. False when we have not sent that far. */
  acknowledged(n: number): boolean {
    if (n > this.#sentTo) {
      return false;
    }
    this.#drop(n);
    return true;
  }

  /** Nothing from `n` on was stored; it may come again at `until`. False when we have not sent that far. */
  refused(n: number, until: number): boolean {
    if (n > this.#sentTo) {
      return false;
    }
    if (n > this.#storedTo) {
      this.#sentTo = n - 1;
      this.#heldUntil = until;
    }
    return true;
  }

  /** The frames that may go now. They count as sent. */
  takeDue(now: number): string[] {
    if (now < this.#heldUntil) {
      return [];
    }
    this.#heldUntil = -Infinity;
    const to = this.#storedTo + WINDOW;
    const due = this.#waiting.filter(({ n }) => n > this.#sentTo && n <= to);
    this.#sentTo = due.at(-1)?.n ?? this.#sentTo;
    return due.map(({ frame }) => frame);
  }

  get #storedTo(): number {
    return this.#lastNumber - this.#waiting.length;
  }

  #drop(upTo: number): void {
    this.#waiting.splice(0, Math.max(0, upTo - this.#storedTo));
  }
}

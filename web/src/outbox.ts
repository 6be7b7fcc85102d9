/**
 * What we send, until the relay has stored it. Pure; the core calls it.
 *
 * Each message has a number n. At most {@link WINDOW} are under way. The relay acknowledges up to an n; or refuses
 * from an n on, then nothing goes out until the delay is over, and everything from n is sent again; or names the n
 * that it expects, in `welcome`.
 *
 * Invariant: numbers are sent in order on each connection, no faster and no longer than the relay allows, and one that
 * was acknowledged is never needed again.
 */

import { utf8 } from "./bytes.js";
import { DEFAULT_LIMITS, writeFrame, type RefusalCode, type SessionLimits } from "./frames.js";
import { Pace } from "./pace.js";

/** Whatever a relay claims, no more waits here than a session carries by default ... */
const MESSAGES_MAX = 4_096;
/** ... and no more bytes than this. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Frames under way without an acknowledgement. Bounds what a refusal makes us send again. */
const WINDOW = 32;
/** Longest delay of a refusal that is believed: the session would be over. */
const RETRY_MAX_MS = 60_000;
/** The frame that brings a message to the peer is longer than ours, and held to the same length. */
const AROUND_BYTES = '{"t":"msg","seq":18446744073709551615,"gen":4294967295,"d":""}'.length;
const QUOTES_BYTES = 2;

/** Why a message was not taken. */
export type OutboxFault = "outbox_full" | "too_large";

export class Outbox {
  readonly #waiting: { readonly n: number; readonly frame: string; readonly bytes: number }[] = [];
  readonly #pace = new Pace(DEFAULT_LIMITS);
  #limits = DEFAULT_LIMITS;
  #bytes = 0;
  #lastNumber = 0;
  #sentTo = 0;
  /** Over all connections: the relay can't have more. */
  #everSentTo = 0;
  #heldUntil = -Infinity;

  /** Messages that the relay has not acknowledged. */
  get size(): number {
    return this.#waiting.length;
  }

  /**
   * How many messages may wait: as many as in the relay's mailbox, which is where they would wait otherwise. A smaller
   * one than usual doesn't count: here a message too many is an error, and an offer with its candidates has to fit.
   */
  get capacity(): number {
    return Math.min(Math.max(this.#limits.mailboxMessages, DEFAULT_LIMITS.mailboxMessages), MESSAGES_MAX);
  }

  /** Whether another message may be pushed. */
  get isFull(): boolean {
    const bytes = Math.min(Math.max(this.#limits.mailboxBytes, DEFAULT_LIMITS.mailboxBytes), BYTES_MAX);
    return this.#waiting.length >= this.capacity || this.#bytes >= bytes;
  }

  /** Longest content that can pass, in bytes of JSON between its quotes. */
  get longest(): number {
    const { frameBytes, mailboxBytes } = this.#limits;
    return Math.min(frameBytes - AROUND_BYTES, mailboxBytes);
  }

  /** When something held back may go. */
  get deadline(): number {
    const waits = this.#sentTo < Math.min(this.#lastNumber, this.#windowEnd);
    return waits ? Math.max(this.#heldUntil, this.#pace.readyAt) : Infinity;
  }

  /** Takes a message, or says why not. */
  push(d: string): OutboxFault | undefined {
    const bytes = utf8(JSON.stringify(d)).length - QUOTES_BYTES;
    if (bytes > this.longest) {
      return "too_large";
    }
    if (this.isFull) {
      return "outbox_full";
    }
    this.#lastNumber += 1;
    this.#bytes += bytes;
    this.#waiting.push({ n: this.#lastNumber, frame: writeFrame({ t: "msg", n: this.#lastNumber, d }), bytes });
    return undefined;
  }

  /** A new connection, on which the relay expects `next` and allows this much. False when that can't be. */
  welcomed(next: number, limits: SessionLimits): boolean {
    if (next <= this.#storedTo || next > this.#everSentTo + 1) {
      return false;
    }
    this.#limits = limits;
    this.#pace.told(limits);
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

  /** Nothing from `n` on was stored; it may come again after the delay. False when we have not sent that far. */
  refused(n: number, code: RefusalCode, retryMs: number, now: number): boolean {
    if (n > this.#sentTo) {
      return false;
    }
    if (n > this.#storedTo) {
      const until = now + Math.min(retryMs, RETRY_MAX_MS);
      this.#sentTo = n - 1;
      this.#heldUntil = until;
      if (code === "rate_limited") {
        this.#pace.drained(until);
      }
    }
    return true;
  }

  /** The frames that may go now. They count as sent. */
  takeDue(now: number): string[] {
    const due: string[] = [];
    while (this.deadline <= now) {
      const next = this.#waiting[this.#sentTo - this.#storedTo];
      if (next === undefined) {
        break;
      }
      this.#pace.take(now);
      this.#sentTo = next.n;
      this.#everSentTo = Math.max(this.#everSentTo, next.n);
      due.push(next.frame);
    }
    return due;
  }

  get #storedTo(): number {
    return this.#lastNumber - this.#waiting.length;
  }

  get #windowEnd(): number {
    return this.#storedTo + Math.min(WINDOW, Math.max(1, this.#limits.mailboxMessages));
  }

  #drop(upTo: number): void {
    for (const { bytes } of this.#waiting.splice(0, Math.max(0, upTo - this.#storedTo))) {
      this.#bytes -= bytes;
    }
  }
}

/**
 * What the relay sends us in sequence, and our acknowledgements. Pure; the core calls it.
 *
 * `received` is the highest seq handed to the application, `processed` the highest it is done with: only that is
 * acknowledged, so that a page that dies in between gets the rest again.
 *
 * Invariant: every seq is handed on once and in order, and generations of the peer never go back.
 */

import type { SessionLimits } from "./frames.js";

/** Acknowledgements wait this long for company. The contract allows 200 ms. */
const ACK_DELAY_MS = 100;
/** So many are acknowledged at once, whatever the delay. */
const ACK_BATCH = 32;
/** An honest relay has a mailbox of messages for us at most, and a change of generation now and then. */
const CHANGES_MAX = 256;
/** The largest mailbox that an operator may set. */
const MAILBOX_MESSAGES_MAX = 65_536;

/**
 * `new`: hand it on. `restart`: likewise, and a page load of the peer took another's place just before it. `stale`: of
 * a generation that was replaced. `known`: it comes again after a resume, since it wasn't acknowledged. `repeated` and
 * `sequence_gap`: the relay is out of sequence. `flood`: it sends more than a mailbox holds without waiting for us.
 */
export type Arrival = "new" | "restart" | "stale" | "known" | "repeated" | "sequence_gap" | "flood";

export class Inbox {
  #started = false;
  #received = 0;
  #processed = 0;
  #acknowledged = 0;
  /** Where the relay is on this connection. */
  #at = 0;
  #ackAt = Infinity;
  #generation = 0;
  #unprocessedMax = CHANGES_MAX;

  /** When the next acknowledgement is due. */
  get deadline(): number {
    return this.#ackAt;
  }

  /** For the hello of a new connection: the highest seq that the application is done with. */
  greet(): number {
    this.#at = this.#processed;
    return this.#processed;
  }

  /** Its welcome: the relay dropped everything up to `base`. False when some of that we never saw. */
  welcomed(base: number, { mailboxMessages }: SessionLimits, now: number): boolean {
    this.#unprocessedMax = Math.min(mailboxMessages, MAILBOX_MESSAGES_MAX) + CHANGES_MAX;
    if (!this.#started) {
      this.#started = true;
      this.#received = base;
      this.#processed = base;
    }
    if (base > this.#received) {
      return false;
    }
    this.#at = Math.max(this.#at, base);
    this.#acknowledged = base;
    this.#ackAt = this.#processed > base ? now + ACK_DELAY_MS : Infinity;
    return true;
  }

  /** Something with this number came from this generation of the peer; `announced`: it tells of the generation. */
  arrived(seq: number, generation: number, announced: boolean): Arrival {
    if (seq !== this.#at + 1) {
      return seq > this.#at ? "sequence_gap" : "repeated";
    }
    this.#at = seq;
    if (seq <= this.#received) {
      return "known";
    }
    if (this.#received - this.#processed >= this.#unprocessedMax) {
      return "flood";
    }
    this.#received = seq;
    const before = this.#generation;
    if (generation < before) {
      return "stale";
    }
    this.#generation = generation;
    // The first arrival of a peer is not sequenced, so an announcement that is tells of a replacement.
    return generation > before && (announced || before > 0) ? "restart" : "new";
  }

  /** The application is done with `seq` and all before it. */
  done(seq: number, now: number): void {
    this.#processed = Math.max(this.#processed, Math.min(seq, this.#received));
    const waiting = this.#processed - this.#acknowledged;
    if (waiting > 0) {
      this.#ackAt = waiting >= ACK_BATCH ? now : Math.min(this.#ackAt, now + ACK_DELAY_MS);
    }
  }

  /** The seq to acknowledge now, if any. `flush` doesn't wait for company. */
  takeDue(now: number, flush = false): number | undefined {
    if (this.#ackAt === Infinity || (now < this.#ackAt && !flush)) {
      return undefined;
    }
    this.#ackAt = Infinity;
    this.#acknowledged = Math.max(this.#acknowledged, this.#processed);
    return this.#acknowledged;
  }
}

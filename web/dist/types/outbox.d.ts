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
import { type RefusalCode, type SessionLimits } from "./frames.js";
/** Why a message was not taken. */
export type OutboxFault = "outbox_full" | "too_large";
export declare class Outbox {
    #private;
    /** Messages that the relay has not acknowledged. */
    get size(): number;
    /**
     * How many messages may wait: as many as in the relay's mailbox, which is where they would wait otherwise. A smaller
     * one than usual doesn't count: here a message too many is an error, and an offer with its candidates has to fit.
     */
    get capacity(): number;
    /** Whether another message may be pushed. */
    get isFull(): boolean;
    /** Longest content that can pass, in bytes of JSON between its quotes. */
    get longest(): number;
    /** When something held back may go. */
    get deadline(): number;
    /** Takes a message, or says why not. */
    push(d: string): OutboxFault | undefined;
    /** A new connection, on which the relay expects `next` and allows this much. False when that can't be. */
    welcomed(next: number, limits: SessionLimits): boolean;
    /** All up to `n` is stored. False when we have not sent that far. */
    acknowledged(n: number): boolean;
    /** Nothing from `n` on was stored; it may come again after the delay. False when we have not sent that far. */
    refused(n: number, code: RefusalCode, retryMs: number, now: number): boolean;
    /** The frames that may go now. They count as sent. */
    takeDue(now: number): string[];
}

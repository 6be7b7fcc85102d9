/**
 * What we send, until the relay has stored it. Pure; the core calls it.
 *
 * Each message has a number n. At most {@link WINDOW} are under way. The relay acknowledges up to an n; or refuses
 * from an n on, then nothing goes out until the delay is over, and everything from n is sent again; or names the n
 * that it expects, in `welcome`.
 *
 * Invariant: numbers are sent in order on each connection, and one that was acknowledged is never needed again.
 */
import { type SessionLimits } from "./frames.js";
/** What the relay keeps for a receiver: more would only wait here instead of there. */
export declare const MESSAGES_MAX = 256;
/** Why a message was not taken. */
export type OutboxFault = "outbox_full" | "too_large";
export declare class Outbox {
    #private;
    /** Messages that the relay has not acknowledged. */
    get size(): number;
    /** When something held back may go. */
    get deadline(): number;
    /** Takes a message, or says why not. */
    push(d: string): OutboxFault | undefined;
    /** A new connection, on which the relay expects `next`. False when that can't be. */
    welcomed(next: number, limits: SessionLimits): boolean;
    /** All up to `n` is stored. False when we have not sent that far. */
    acknowledged(n: number): boolean;
    /** Nothing from `n` on was stored; it may come again at `until`. False when we have not sent that far. */
    refused(n: number, until: number): boolean;
    /** The frames that may go now. They count as sent. */
    takeDue(now: number): string[];
}

/**
 * How fast this side speaks: as fast as the relay lets a slot, so that nothing is refused that could have waited here.
 * Pure; the outbox calls it.
 *
 * The generic cell rate algorithm: each message moves `fullAt`, when the whole burst is to be had again, one interval
 * on; a message may go while that is less than a burst ahead.
 *
 * Invariant: no more messages leave than the limits allow, over all connections; one of the burst is left alone, for
 * messages that the network bunches up.
 */
import type { SessionLimits } from "./frames.js";
export declare class Pace {
    #private;
    constructor(limits: SessionLimits);
    /** The relay said what it allows, perhaps something else than before. */
    told({ messagesPerSecond, burst }: SessionLimits): void;
    /** When the next message may go. */
    get readyAt(): number;
    /** A message goes. */
    take(now: number): void;
    /** The relay has none left before `until`: another page load of this slot had them. */
    drained(until: number): void;
}

/**
 * Whether the peer is there, as the newest word of the relay has it. Pure; the session calls it.
 *
 * A change of the peer's generation has a place in the relay's sequence and is told there; everything else comes outside
 * of it and is told at once, perhaps before that.
 *
 * Invariant: what was true before is not told after what is true now: neither of a generation that was replaced nor,
 * where an announcement had to wait for its turn, of the one that it announces.
 */
import type { PeerEvent } from "./core-types.js";
export declare class Presence {
    #private;
    /** Said outside the sequence: false when it is of a page load that another has replaced. */
    noticed(event: PeerEvent): boolean;
    /** A generation's turn has come. What to tell of it. */
    announced(event: PeerEvent): PeerEvent;
}

/**
 * The signaling client as a pure state machine. {@link Session} feeds it what happens and does what it says; time and
 * randomness are given to it, so hours pass in a test in no time.
 *
 *     new --start--> dialing --welcome--> live
 *                      ^  |                | lost, cut, retryable close code, goaway
 *                      |  +--- refused ----+---> waiting --back-off over, or a wake-up--> dialing
 *     any of them --close(), a final close code, out of step, unreachable--> closed
 *
 * Each dial has a number, `try` in its hello; what comes from an earlier dial is ignored.
 *
 * Invariant: a message pushed is sent, and one received is handed on, exactly once and in order, over any number of
 * connections; or the session closes and says why.
 */
import type { CoreOptions, Effect } from "./core-types.js";
import { type Mood } from "./frames.js";
import { Outbox, type OutboxFault } from "./outbox.js";
export declare class SignalCore {
    #private;
    constructor(options: CoreOptions);
    /** When {@link timer} has to be called next, if no input comes before; `Infinity`: never. */
    get deadline(): number;
    /** Messages that the relay has not acknowledged. */
    get unacknowledged(): number;
    /** What may be sent. */
    get room(): Pick<Outbox, "capacity" | "isFull" | "longest">;
    /** Begins. */
    start(now: number): Effect[];
    /** The socket of this dial is open. */
    opened(dial: number, now: number): Effect[];
    /** The socket of this dial brought something. */
    received(dial: number, data: unknown, now: number): Effect[];
    /** The socket of this dial is closed, or could not be opened (1006). */
    closed(dial: number, code: number, now: number): Effect[];
    /** The deadline has passed. Too early or late does no harm. */
    timer(now: number): Effect[];
    /** The page became visible, or the network came back. */
    wake(now: number): Effect[];
    /** Sends an opaque message, now or when connected. A refusal is the caller's to handle; nothing was sent then. */
    send(d: string, now: number): {
        effects: Effect[];
        fault?: OutboxFault | "closed";
    };
    /** The application is done with everything up to this seq. */
    done(seq: number, now: number): Effect[];
    /** Asks for fresh TURN credentials: at once, or as soon as the relay allows it. */
    refreshIce(now: number): Effect[];
    /** Leaves for good. The peer is told when connected; else it sees `left` after the relay's grace. */
    close(mood: Mood, now: number): Effect[];
}

/**
 * Is the connection alive? Pages can't see the WebSocket's own pings, so we send some that they can. Pure; the core
 * calls it.
 *
 *     quiet --20 s without a frame, or a wake-up--> probing --any frame--> quiet
 *                                                   probing --10 s (4 s after a wake-up), awake all the time--> lost
 *
 * Invariant: a page that slept through the wait concludes nothing. Background timers run once a minute, and a frozen
 * page's run before the frames that came meanwhile; so a timer that fires late sends another ping instead.
 */
/** The answer to a ping that silence caused must come within this. */
export declare const PING_WAIT_MS = 10000;
/** The answer to a ping after the page woke up or the network came back. */
export declare const WAKE_WAIT_MS = 4000;
export declare class Heartbeat {
    #private;
    constructor(now: number);
    get deadline(): number;
    /** A frame came. */
    heard(now: number): void;
    /** A frame goes out. */
    said(now: number): void;
    /** The page woke up, or the network came back: true when a ping has to go out. */
    wake(now: number): boolean;
    /** A timer fired. */
    tick(now: number): "fine" | "ping" | "lost";
}

/** How long to wait before the next dial: full jitter, so that clients that lost the same relay don't return at once. */
import type { Retry } from "./close-codes.js";
export declare class Backoff {
    #private;
    constructor(random: () => number);
    /** A connection ended after this long. */
    lived(forMs: number): void;
    /** The next delay. */
    next(retry: Retry): number;
}

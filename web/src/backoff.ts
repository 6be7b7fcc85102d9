/** How long to wait before the next dial: full jitter, so that clients that lost the same relay don't return at once. */

import type { Retry } from "./close-codes.js";

const FIRST_CAP_MS = 500;
const CAP_MS = 15_000;
const BUSY_MS = 5_000;
/** A connection that lived this long was a good one. A shorter one counts as another failed dial. */
const GOOD_MS = 5_000;

export class Backoff {
  readonly #random: () => number;
  #attempt = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** A connection ended after this long. */
  lived(forMs: number): void {
    if (forMs >= GOOD_MS) {
      this.#attempt = 0;
    }
  }

  /** The next delay. */
  next(retry: Retry): number {
    const cap = Math.min(CAP_MS, FIRST_CAP_MS * 2 ** this.#attempt);
    this.#attempt += 1;
    const jitter = Math.floor(this.#random() * cap);
    return retry === "busy" ? BUSY_MS + jitter : jitter;
  }
}

/** Requests for fresh TURN credentials: the relay answers one per 30 s, so the rest wait and become one. Pure. */

const SPACING_MS = 30_000;

export class IceRequests {
  #wanted = false;
  #nextAt = -Infinity;

  get deadline(): number {
    return this.#wanted ? this.#nextAt : Infinity;
  }

  want(): void {
    this.#wanted = true;
  }

  /** True when a request goes out now. */
  takeDue(now: number): boolean {
    if (!this.#wanted || now < this.#nextAt) {
      return false;
    }
    this.#wanted = false;
    this.#nextAt = now + SPACING_MS;
    return true;
  }
}

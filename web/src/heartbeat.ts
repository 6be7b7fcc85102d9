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

const QUIET_MS = 20_000;
/** The answer to a ping that silence caused must come within this. */
export const PING_WAIT_MS = 10_000;
/** The answer to a ping after the page woke up or the network came back. */
export const WAKE_WAIT_MS = 4_000;
/** How often a wait is looked at, so that a page that sleeps in the middle of it is noticed. */
const LOOK_MS = 2_000;
/** A timer that is later than this was slept through. */
const LATE_MS = 2_000;

interface Probe {
  readonly waitMs: number;
  deadline: number;
  lookAt: number;
}

export class Heartbeat {
  #heardAt: number;
  #saidAt: number;
  #probe: Probe | undefined;

  constructor(now: number) {
    this.#heardAt = now;
    this.#saidAt = now;
  }

  get deadline(): number {
    return this.#probe?.lookAt ?? this.#quietSince + QUIET_MS;
  }

  /** A frame came. */
  heard(now: number): void {
    this.#heardAt = now;
    this.#probe = undefined;
  }

  /** A frame goes out. */
  said(now: number): void {
    this.#saidAt = now;
  }

  /** The page woke up, or the network came back: true when a ping has to go out. */
  wake(now: number): boolean {
    const probe = this.#probe;
    if (probe === undefined || sleptThrough(probe, now)) {
      this.#begin(now, WAKE_WAIT_MS);
      return true;
    }
    probe.deadline = Math.min(probe.deadline, now + WAKE_WAIT_MS);
    probe.lookAt = Math.min(probe.lookAt, probe.deadline);
    return false;
  }

  /** A timer fired. */
  tick(now: number): "fine" | "ping" | "lost" {
    const probe = this.#probe;
    if (probe === undefined) {
      return now < this.#quietSince + QUIET_MS ? "fine" : this.#begin(now, PING_WAIT_MS);
    }
    if (sleptThrough(probe, now)) {
      return this.#begin(now, probe.waitMs);
    }
    if (now >= probe.deadline) {
      return "lost";
    }
    if (now >= probe.lookAt) {
      probe.lookAt = Math.min(now + LOOK_MS, probe.deadline);
    }
    return "fine";
  }

  /** Both directions count: the relay wants to hear us, too. */
  get #quietSince(): number {
    return Math.min(this.#heardAt, this.#saidAt);
  }

  #begin(now: number, waitMs: number): "ping" {
    this.#probe = { waitMs, deadline: now + waitMs, lookAt: now + Math.min(LOOK_MS, waitMs) };
    return "ping";
  }
}

function sleptThrough(probe: Probe, now: number): boolean {
  return now > probe.lookAt + LATE_MS;
}

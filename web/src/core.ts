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

import { Backoff } from "./backoff.js";
import { CLOSE, meaningOf, type CloseReason, type Retry } from "./close-codes.js";
import type { CoreOptions, Effect, Phase, Sequenced, ViolationReason } from "./core-types.js";
import { Effects } from "./effects.js";
import { readFrame, writeFrame, type ClientFrame, type Mood, type ServerFrame, type WelcomeFrame } from "./frames.js";
import { Heartbeat } from "./heartbeat.js";
import { IceRequests } from "./ice-requests.js";
import { Inbox } from "./inbox.js";
import { Outbox, type OutboxFault } from "./outbox.js";
import type { Slot } from "./signal-seal.js";

/** From the dial to the welcome. */
const DIAL_MS = 10_000;
/** After a wake-up a dial under way gets this much longer at most. */
const WAKE_DIAL_MS = 4_000;
/** A session lives 10 minutes at most: without a connection for longer there is none to come back to. */
const UNREACHABLE_MS = 11 * 60_000;

export class SignalCore {
  readonly #options: CoreOptions;
  readonly #outbox = new Outbox();
  readonly #inbox = new Inbox();
  readonly #ice = new IceRequests();
  readonly #backoff: Backoff;
  readonly #effects = new Effects();
  #phase: Phase = { name: "new" };
  #dial = 0;
  #slot: Slot | undefined;
  #lastLive = 0;

  constructor(options: CoreOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
  }

  /** When {@link timer} has to be called next, if no input comes before; `Infinity`: never. */
  get deadline(): number {
    const phase = this.#phase;
    switch (phase.name) {
      case "new":
      case "closed":
        return Infinity;
      case "waiting":
        return phase.until;
      case "dialing":
        return phase.deadline;
      case "live":
        return Math.min(
          phase.heartbeat.deadline,
          phase.moveAt,
          this.#outbox.deadline,
          this.#inbox.deadline,
          this.#ice.deadline,
        );
    }
  }

  /** Messages that the relay has not acknowledged. */
  get unacknowledged(): number {
    return this.#outbox.size;
  }

  /** What may be sent. */
  get room(): Pick<Outbox, "capacity" | "isFull" | "longest"> {
    return this.#outbox;
  }

  /** Begins. */
  start(now: number): Effect[] {
    if (this.#phase.name === "new") {
      this.#lastLive = now;
      this.#redial(now);
    }
    return this.#effects.take();
  }

  /** The socket of this dial is open. */
  opened(dial: number, now: number): Effect[] {
    if (dial === this.#dial && this.#phase.name === "dialing") {
      const { ticket, connectionId } = this.#options;
      this.#say(now, { t: "hello", v: 1, ticket, cid: connectionId, try: dial, last: this.#inbox.greet() });
    }
    return this.#effects.take();
  }

  /** The socket of this dial brought something. */
  received(dial: number, data: unknown, now: number): Effect[] {
    const expected = this.#phase.name === "dialing" || this.#phase.name === "live";
    if (dial === this.#dial && expected) {
      this.#read(readFrame(data), now);
    }
    return this.#effects.take();
  }

  /** The socket of this dial is closed, or could not be opened (1006). */
  closed(dial: number, code: number, now: number): Effect[] {
    const expected = this.#phase.name === "dialing" || this.#phase.name === "live";
    if (dial === this.#dial && expected) {
      const meaning = meaningOf(code);
      if ("final" in meaning) {
        this.#finish(meaning.final, code);
      } else {
        this.#wait(meaning.retry, now);
      }
    }
    return this.#effects.take();
  }

  /** The deadline has passed. Too early or late does no harm. */
  timer(now: number): Effect[] {
    const phase = this.#phase;
    if (phase.name === "waiting" && now >= phase.until) {
      this.#redial(now);
    } else if (phase.name === "dialing" && now >= phase.deadline) {
      this.#effects.hangUp(this.#dial, CLOSE.noWelcome);
      this.#wait("backoff", now);
    } else if (phase.name === "live") {
      this.#tick(phase, now);
    }
    return this.#effects.take();
  }

  /** The page became visible, or the network came back. */
  wake(now: number): Effect[] {
    const phase = this.#phase;
    if (phase.name === "waiting" && !phase.patient) {
      this.#redial(now);
    } else if (phase.name === "dialing") {
      phase.deadline = Math.min(phase.deadline, now + WAKE_DIAL_MS);
    } else if (phase.name === "live" && phase.heartbeat.wake(now)) {
      this.#say(now, { t: "ping" });
    }
    return this.#effects.take();
  }

  /** Sends an opaque message, now or when connected. A refusal is the caller's to handle; nothing was sent then. */
  send(d: string, now: number): { effects: Effect[]; fault?: OutboxFault | "closed" } {
    if (this.#phase.name === "closed") {
      return { effects: [], fault: "closed" };
    }
    const fault = this.#outbox.push(d);
    if (fault !== undefined) {
      return { effects: [], fault };
    }
    this.#flush(now);
    return { effects: this.#effects.take() };
  }

  /** The application is done with everything up to this seq. */
  done(seq: number, now: number): Effect[] {
    this.#inbox.done(seq, now);
    this.#flush(now);
    return this.#effects.take();
  }

  /** Asks for fresh TURN credentials: at once, or as soon as the relay allows it. */
  refreshIce(now: number): Effect[] {
    this.#ice.want();
    this.#flush(now);
    return this.#effects.take();
  }

  /** Leaves for good. The peer is told when connected; else it sees `left` after the relay's grace. */
  close(mood: Mood, now: number): Effect[] {
    if (this.#phase.name === "live") {
      this.#acknowledge(now, true);
      this.#say(now, { t: "bye", mood });
    }
    if (this.#phase.name !== "closed") {
      this.#effects.hangUp(this.#dial, CLOSE.normal);
      this.#finish("left", undefined);
    }
    return this.#effects.take();
  }

  #read(frame: ReturnType<typeof readFrame>, now: number): void {
    const phase = this.#phase;
    if (frame === "malformed") {
      this.#distrust("malformed_frame", CLOSE.protocolError, now);
    } else if (phase.name === "live") {
      phase.heartbeat.heard(now);
      if (frame !== "unknown") {
        this.#heed(frame, now);
      }
    } else if (frame !== "unknown" && frame.t === "welcome") {
      this.#welcomed(frame, now);
    } else {
      this.#distrust("malformed_frame", CLOSE.protocolError, now);
    }
  }

  #welcomed(frame: WelcomeFrame, now: number): void {
    const resumed = this.#slot !== undefined;
    const sameSlot = !resumed || this.#slot === frame.slot;
    const inStep = this.#outbox.welcomed(frame.next, frame.limits) && this.#inbox.welcomed(frame.base, frame.limits, now);
    if (!sameSlot || !inStep) {
      // What was acknowledged is lost, or what we never said is claimed: no later connection can mend that.
      this.#effects.emit({ type: "violation", reason: "out_of_step" });
      this.#effects.hangUp(this.#dial, CLOSE.outOfStep);
      this.#finish("out_of_step", undefined);
      return;
    }
    this.#slot = frame.slot;
    this.#lastLive = now;
    this.#phase = { name: "live", since: now, heartbeat: new Heartbeat(now), moveAt: Infinity };
    this.#effects.emit({ type: "state", state: "live" });
    const { slot, role, gen: generation, expiresAt, limits, iceServers } = frame;
    this.#effects.emit({ type: "welcome", resumed, slot, role, generation, expiresAt, limits, iceServers });
    this.#effects.emit({ type: "peer", state: frame.peer.state, generation: frame.peer.gen });
    this.#flush(now);
  }

  #heed(frame: ServerFrame, now: number): void {
    switch (frame.t) {
      case "welcome":
        this.#distrust("malformed_frame", CLOSE.protocolError, now);
        return;
      case "ack":
        this.#settle(this.#outbox.acknowledged(frame.n), now);
        return;
      case "msg":
        this.#sequenced(frame.seq, frame.gen, { type: "message", d: frame.d }, now);
        return;
      case "peer":
        this.#presence(frame, now);
        return;
      case "ping":
        this.#say(now, { t: "pong" });
        return;
      case "pong":
        return;
      case "ice":
        this.#effects.emit({ type: "ice", iceServers: frame.iceServers, expiresAt: frame.expiresAt });
        return;
      case "goaway":
        this.#move(frame.inMs, now);
        return;
      case "err":
        this.#refused(frame, now);
        return;
    }
  }

  #presence(frame: ServerFrame & { t: "peer" }, now: number): void {
    const event = { type: "peer", state: frame.state, generation: frame.gen } as const;
    if (frame.seq === undefined) {
      this.#effects.emit(event);
    } else {
      this.#sequenced(frame.seq, frame.gen, event, now);
    }
  }

  #sequenced(seq: number, generation: number, item: Sequenced, now: number): void {
    const arrival = this.#inbox.arrived(seq, generation, item.type === "peer");
    switch (arrival) {
      case "sequence_gap":
      case "flood":
        this.#distrust(arrival, CLOSE.outOfStep, now);
        return;
      case "known":
        return;
      case "repeated":
        this.#effects.emit({ type: "violation", reason: "repeated" });
        return;
      case "stale":
        this.#effects.emit({ type: "violation", reason: "stale_generation" });
        this.#effects.deliver({ seq, generation, item: undefined, restarted: false });
        return;
      case "new":
      case "restart":
        this.#effects.deliver({ seq, generation, item, restarted: arrival === "restart" });
    }
  }

  #refused(frame: ServerFrame & { t: "err" }, now: number): void {
    this.#effects.emit({ type: "refused", code: frame.code, retryMs: frame.retryMs });
    if (frame.n !== undefined) {
      this.#settle(this.#outbox.refused(frame.n, frame.code, frame.retryMs, now), now);
    }
  }

  #settle(plausible: boolean, now: number): void {
    if (!plausible) {
      this.#effects.emit({ type: "violation", reason: "acknowledged_unsent" });
    }
    this.#flush(now);
  }

  #move(inMs: number, now: number): void {
    if (this.#phase.name === "live") {
      this.#phase.moveAt = Math.min(this.#phase.moveAt, now + Math.floor(this.#options.random() * inMs));
      this.#effects.emit({ type: "goaway", inMs });
    }
  }

  #tick(phase: Phase & { name: "live" }, now: number): void {
    const pulse = phase.heartbeat.tick(now);
    if (pulse === "lost") {
      this.#effects.hangUp(this.#dial, CLOSE.heartbeatsMissed);
      this.#wait("backoff", now);
    } else if (now >= phase.moveAt) {
      this.#effects.hangUp(this.#dial, CLOSE.normal);
      this.#lived(phase, now);
      this.#redial(now);
    } else {
      if (pulse === "ping") {
        this.#say(now, { t: "ping" });
      }
      this.#flush(now);
    }
  }

  #flush(now: number): void {
    if (this.#phase.name !== "live") {
      return;
    }
    this.#acknowledge(now, false);
    for (const frame of this.#outbox.takeDue(now)) {
      this.#transmit(frame, now);
    }
    if (this.#ice.takeDue(now)) {
      this.#say(now, { t: "ice" });
    }
  }

  #acknowledge(now: number, flush: boolean): void {
    const seq = this.#inbox.takeDue(now, flush);
    if (seq !== undefined) {
      this.#say(now, { t: "ack", seq });
    }
  }

  #redial(now: number): void {
    if (now - this.#lastLive > UNREACHABLE_MS) {
      this.#finish("unreachable", undefined);
      return;
    }
    this.#dial += 1;
    this.#phase = { name: "dialing", deadline: now + DIAL_MS };
    this.#effects.emit({ type: "state", state: "connecting" });
    this.#effects.dial(this.#dial);
  }

  #wait(retry: Retry, now: number): void {
    const phase = this.#phase;
    if (phase.name === "live") {
      this.#lived(phase, now);
    }
    const move = phase.name === "live" && retry === "moved" ? phase.moveAt : Infinity;
    const until = move < Infinity ? Math.max(now, move) : now + this.#backoff.next(retry);
    this.#phase = { name: "waiting", until, patient: retry !== "backoff" };
    this.#effects.emit({ type: "state", state: "waiting", retryInMs: until - now });
  }

  #lived({ since }: Phase & { name: "live" }, now: number): void {
    this.#lastLive = now;
    this.#backoff.lived(now - since);
  }

  /** The relay broke the rules on this connection: report it and try another. */
  #distrust(reason: ViolationReason, code: number, now: number): void {
    this.#effects.emit({ type: "violation", reason });
    this.#effects.hangUp(this.#dial, code);
    this.#wait("backoff", now);
  }

  #finish(reason: CloseReason, code: number | undefined): void {
    this.#phase = { name: "closed" };
    this.#effects.emit({ type: "state", state: "closed" });
    this.#effects.emit({ type: "closed", reason, code });
  }

  #say(now: number, frame: ClientFrame): void {
    this.#transmit(writeFrame(frame), now);
  }

  #transmit(frame: string, now: number): void {
    if (this.#phase.name === "live") {
      this.#phase.heartbeat.said(now);
    }
    this.#effects.transmit(this.#dial, frame);
  }
}

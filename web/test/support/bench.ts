/** Drives a core by hand: no sockets, no timers, time as the test says. */
import assert from "node:assert/strict";
import { SignalCore } from "../../src/core.js";
import type { CoreEvent, Delivery, Effect } from "../../src/core-types.js";

export const LIMITS = {
  frameBytes: 32768,
  mailboxMessages: 256,
  mailboxBytes: 524288,
  messagesPerSecond: 20,
  burst: 60,
};

export interface Frame {
  readonly t: string;
  readonly [field: string]: unknown;
}

export class Bench {
  readonly core: SignalCore;
  now = 1_000;
  dial = 0;
  /** Since the last `forget`. */
  sent: Frame[] = [];
  events: CoreEvent[] = [];
  delivered: Delivery[] = [];
  dials = 0;
  hangUps: number[] = [];

  constructor(random: () => number = () => 0.5) {
    this.core = new SignalCore({ ticket: "ticket", connectionId: "c".repeat(32), random });
  }

  do(effects: Effect[]): this {
    for (const effect of effects) {
      switch (effect.do) {
        case "dial":
          this.dial = effect.dial;
          this.dials += 1;
          break;
        case "transmit":
          assert.equal(effect.dial, this.dial);
          this.sent.push(JSON.parse(effect.frame) as Frame);
          break;
        case "hang-up":
          this.hangUps.push(effect.code);
          break;
        case "emit":
          this.events.push(effect.event);
          break;
        case "deliver":
          this.delivered.push(effect);
          break;
      }
    }
    return this;
  }

  /** Connected, as slot a. */
  live(welcome: Record<string, unknown> = {}): this {
    if (this.core.deadline === Infinity) {
      this.do(this.core.start(this.now));
    }
    return this.open().welcome(welcome).forget();
  }

  open(): this {
    return this.do(this.core.opened(this.dial, this.now));
  }

  welcome(fields: Record<string, unknown> = {}): this {
    return this.hear({
      t: "welcome",
      slot: "a",
      role: "impolite",
      gen: 1,
      next: 1,
      base: 0,
      peer: { state: "absent", gen: 0 },
      expiresAt: "2030-01-01T00:00:00Z",
      graceSeconds: 30,
      heartbeatSeconds: 25,
      limits: LIMITS,
      ...fields,
    });
  }

  hear(frame: Frame): this {
    return this.hearText(JSON.stringify(frame));
  }

  hearText(text: unknown): this {
    return this.do(this.core.received(this.dial, text, this.now));
  }

  close(code: number): this {
    return this.do(this.core.closed(this.dial, code, this.now));
  }

  send(d: string): this {
    const { effects, fault } = this.core.send(d, this.now);
    assert.equal(fault, undefined);
    return this.do(effects);
  }

  /** Time passes, with a timer that fires on time whenever it is due. */
  pass(ms: number): this {
    const end = this.now + ms;
    while (this.core.deadline <= end) {
      this.now = Math.max(this.now, this.core.deadline);
      this.do(this.core.timer(this.now));
    }
    this.now = end;
    return this;
  }

  /** Time passes with the page asleep: its timer fires once, at the end. */
  sleep(ms: number): this {
    this.now += ms;
    return this.do(this.core.timer(this.now));
  }

  forget(): this {
    [this.sent, this.events, this.delivered, this.hangUps, this.dials] = [[], [], [], [], 0];
    return this;
  }

  get types(): string[] {
    return this.sent.map(({ t }) => t);
  }

  get numbers(): unknown[] {
    return this.sent.filter(({ t }) => t === "msg").map(({ n }) => n);
  }

  get state(): string | undefined {
    const states = this.events.filter((event) => event.type === "state");
    return states.at(-1)?.state;
  }

  get violations(): string[] {
    return this.events.filter((event) => event.type === "violation").map(({ reason }) => reason);
  }

  get end(): unknown {
    return this.events.find((event) => event.type === "closed");
  }
}

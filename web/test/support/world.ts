/**
 * A relay double, pages with sessions, and a clock that the test turns: every turn of {@link World.until} lets all that
 * is under way happen and moves the clock by 50 ms.
 */
import assert from "node:assert/strict";
import type { Platform, WebSocketConstructor, WebSocketLike } from "../../src/platform.js";
import { Session } from "../../src/session.js";
import type { MessageEvent } from "../../src/session-types.js";
import { newSecret } from "../../src/signal-seal.js";
import { RelayDouble } from "./relay-double.js";

const TURN_MS = 50;
/** A quarter of a simulated hour. */
const TURNS_MAX = 18_000;
/** Sealing runs on other threads and timers of `connect` are real: a busy machine may need this long for its part. */
const REAL_MS_MAX = 20_000;

export const SECRET = newSecret();

export class World {
  readonly relay = new RelayDouble();
  now = 0;
  /** Dials are refused. */
  down = false;
  /** Nothing comes through, and nobody is told. */
  blackhole = false;
  dials = 0;
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>();
  readonly #wakers = new Set<() => void>();

  /** A page that loads: a new session on this side. */
  page(slot: "a" | "b", secret: Uint8Array | "unsealed" = SECRET): Page {
    return new Page(
      new Session({
        url: "wss://relay.test/v1/signal",
        sessionId: "session",
        ticket: `ticket-${slot}`,
        secret,
        platform: this.platform(),
      }),
    );
  }

  /** Turns the clock until `condition` holds. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const since = performance.now();
    for (let turn = 0; !condition(); turn += 1) {
      assert.ok(turn < TURNS_MAX || performance.now() - since < REAL_MS_MAX, `never came: ${what}`);
      await this.turn();
    }
  }

  /** Turns the clock this far. */
  async pass(ms: number): Promise<void> {
    for (const end = this.now + ms; this.now < end;) {
      await this.turn();
    }
  }

  wake(): void {
    for (const waker of this.#wakers) {
      waker();
    }
  }

  /** Timers that somebody still waits for. */
  get timers(): number {
    return this.#timers.size;
  }

  async turn(): Promise<void> {
    // Sealing runs on other threads: give it a real moment, too.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    this.now += TURN_MS;
    for (const timer of [...this.#timers]) {
      if (timer.at <= this.now) {
        this.#timers.delete(timer);
        timer.callback();
      }
    }
  }

  platform(): Platform {
    return {
      now: () => this.now,
      random: () => 0.5,
      after: (delayMs, callback) => {
        const timer = { at: this.now + delayMs, callback };
        this.#timers.add(timer);
        return () => this.#timers.delete(timer);
      },
      onWake: (callback) => {
        this.#wakers.add(callback);
        return () => this.#wakers.delete(callback);
      },
      webSocket: () => this.#sockets(),
    };
  }

  #sockets(): WebSocketConstructor {
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- a class made in a method.
    const world = this;
    return class extends FakeSocket {
      constructor(_url: string, protocol: string) {
        super(world, protocol);
      }
    };
  }
}

/** A page, and what came to it. */
export class Page {
  readonly session: Session;
  readonly messages: MessageEvent[] = [];
  /** Everything told, as words. */
  readonly log: string[] = [];

  constructor(session: Session) {
    this.session = session;
    session.on("message", (message) => this.messages.push(message));
    session.on("message", ({ kind, value }) => this.log.push(`message ${kind} ${JSON.stringify(value)}`));
    session.on("restart", ({ generation }) => this.log.push(`restart ${generation}`));
    session.on("peer", ({ state }) => this.log.push(`peer ${state}`));
    session.on("violation", ({ reason, missing }) => this.log.push(`violation ${reason}${missing ? ` ${missing}` : ""}`));
    session.on("closed", ({ reason }) => this.log.push(`closed ${reason}`));
    session.on("welcome", ({ role, resumed }) => this.log.push(`${resumed ? "resumed" : "welcome"} ${role}`));
    session.start();
  }

  async say(value: unknown, kind = "note"): Promise<void> {
    await this.session.send({ kind, negotiation: "", value });
  }

  get values(): unknown[] {
    return this.messages.map(({ value }) => value);
  }

  get violations(): string[] {
    return this.log.filter((line) => line.startsWith("violation")).map((line) => line.slice("violation ".length));
  }
}

/** Each frame takes one trip through the event loop, in order. */
class FakeSocket implements WebSocketLike {
  readyState = 0;
  readonly protocol: string;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly #world: World;
  #server: ReturnType<RelayDouble["connect"]> | undefined;

  constructor(world: World, protocol: string) {
    this.#world = world;
    this.protocol = protocol;
    world.dials += 1;
    setImmediate(() => {
      this.#arrive();
    });
  }

  send(data: string): void {
    if (!this.#world.blackhole) {
      setImmediate(() => this.#server?.message(data));
    }
  }

  close(): void {
    if (this.readyState !== 3) {
      this.readyState = 3;
      setImmediate(() => this.#server?.closed());
    }
  }

  #arrive(): void {
    if (this.#world.blackhole || this.readyState === 3) {
      return;
    }
    if (this.#world.down) {
      this.#end(1006);
      return;
    }
    this.readyState = 1;
    this.#server = this.#world.relay.connect({
      send: (text) => {
        if (!this.#world.blackhole) {
          setImmediate(() => {
            this.#give(text);
          });
        }
      },
      close: (code) => {
        setImmediate(() => {
          this.#end(code);
        });
      },
    });
    (this.onopen as (() => void) | null)?.();
  }

  #give(text: string): void {
    if (this.readyState === 1) {
      (this.onmessage as ((event: unknown) => void) | null)?.({ data: text });
    }
  }

  #end(code: number): void {
    if (this.readyState !== 3) {
      this.readyState = 3;
      this.#server?.closed();
      (this.onclose as ((event: unknown) => void) | null)?.({ code });
    }
  }
}

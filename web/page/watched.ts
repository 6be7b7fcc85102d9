/**
 * A session that shows its work: each frame as it is on the wire, beside the message that is sealed in it.
 *
 * The frames are taken from the WebSocket itself, so the left column of the page is exactly what the relay was given.
 * Pairing: the relay numbers what we send in the order of `send`, and hands on what came in the order of the frames.
 */

import { Session, type SessionOptions, type SignalMessage, type WebSocketConstructor } from "@sovereignfs/relay-client";

/** What is told of the wire. Each frame is told once, but for those that are sent again. */
export interface Watcher {
  /** To be sealed and sent; `n` is the number it will have. */
  sending(n: number, message: SignalMessage): void;
  /** On its way to the relay, or once more after a cut. */
  sent(n: number, sealed: string): void;
  /** The relay has stored everything up to `n`. */
  stored(n: number): void;
  /** Came from the relay. */
  came(seq: number, sealed: string): void;
  /** What was in it; `undefined` when it could not be trusted. */
  opened(seq: number, message: SignalMessage | undefined): void;
  /** The beginning of a connection: what either side says first. Without what is secret in it. */
  greeted(direction: "out" | "in", text: string): void;
}

interface Frame {
  readonly t?: string;
  readonly n?: number;
  readonly seq?: number;
  readonly d?: string;
  readonly last?: number;
  readonly try?: number;
  readonly gen?: number;
  readonly next?: number;
  readonly role?: string;
}

export class WatchedSession extends Session {
  readonly #watcher: Watcher;
  /** Calls of `send` that were not refused. */
  #sends = 0;

  constructor(options: SessionOptions, watcher: Watcher) {
    const arrived: number[] = [];
    let highest = 0;
    const take = (frame: Frame): void => {
      // What comes again after a cut is dropped by the client, too.
      if (frame.t === "msg" && frame.seq !== undefined && frame.seq > highest) {
        highest = frame.seq;
        arrived.push(frame.seq);
        watcher.came(frame.seq, frame.d ?? "");
      } else if (frame.t === "ack" && frame.n !== undefined) {
        watcher.stored(frame.n);
      } else if (frame.t === "welcome") {
        const { role = "", gen = 0, next = 0 } = frame;
        watcher.greeted("in", `welcome · ${role} · page load ${gen} · send from message ${next}`);
      }
    };
    super({ ...options, webSocket: tapped((frame) => { give(watcher, frame); }, take) });
    this.#watcher = watcher;
    this.on("message", (message) => {
      watcher.opened(arrived.shift() ?? 0, message);
    });
    this.on("violation", ({ reason }) => {
      if (reason !== "gap") {
        watcher.opened(arrived.shift() ?? 0, undefined);
      }
    });
  }

  override async send(message: SignalMessage): Promise<void> {
    this.#sends += 1;
    this.#watcher.sending(this.#sends, message);
    await super.send(message);
  }
}

function give(watcher: Watcher, frame: Frame): void {
  if (frame.t === "msg" && frame.n !== undefined) {
    watcher.sent(frame.n, frame.d ?? "");
  } else if (frame.t === "hello") {
    watcher.greeted("out", `hello · ticket and id (hidden here) · dial ${frame.try ?? 0} · have ${frame.last ?? 0}`);
  }
}

/** The browser's WebSocket, which tells of each frame before it does its work. */
function tapped(out: (frame: Frame) => void, came: (frame: Frame) => void): WebSocketConstructor {
  return class extends WebSocket {
    constructor(url: string, protocol: string) {
      super(url, protocol);
      this.addEventListener("message", ({ data }) => {
        came(JSON.parse(String(data)) as Frame);
      });
    }

    override send(data: string): void {
      out(JSON.parse(data) as Frame);
      super.send(data);
    }
  };
}

/** The session's one WebSocket: opens, replaces and abandons it. Which dial a socket belongs to is told with all of it. */

import { SUBPROTOCOL } from "./frames.js";
import type { WebSocketConstructor, WebSocketLike } from "./platform.js";

const OPEN = 1;
const ABNORMAL = 1006;
const WRONG_SUBPROTOCOL = 1002;

/** What a socket tells. */
export interface SocketEvents {
  opened(dial: number): void;
  received(dial: number, data: unknown): void;
  closed(dial: number, code: number): void;
}

export class Socket {
  readonly #url: string;
  readonly #WebSocket: WebSocketConstructor;
  readonly #events: SocketEvents;
  #current: { readonly dial: number; readonly socket: WebSocketLike } | undefined;

  constructor(url: string, webSocket: WebSocketConstructor, events: SocketEvents) {
    this.#url = url;
    this.#WebSocket = webSocket;
    this.#events = events;
  }

  /** Opens a socket in place of the one before. */
  dial(dial: number): void {
    this.abandon();
    let socket: WebSocketLike;
    try {
      socket = new this.#WebSocket(this.#url, SUBPROTOCOL);
    } catch {
      // A page may not be allowed to dial; that is as good as refused. Told later, since we are inside the core's step.
      queueMicrotask(() => {
        this.#events.closed(dial, ABNORMAL);
      });
      return;
    }
    this.#current = { dial, socket };
    socket.onopen = () => {
      this.#opened(dial, socket);
    };
    socket.onmessage = (event: { data: unknown }) => {
      this.#events.received(dial, event.data);
    };
    socket.onclose = (event: { code: number }) => {
      this.#events.closed(dial, event.code);
    };
    // A close event follows, and says more.
    socket.onerror = nothing;
  }

  /** Sends on this dial's socket, if it still is the one. */
  transmit(dial: number, frame: string): void {
    if (this.#current?.dial === dial && this.#current.socket.readyState === OPEN) {
      this.#current.socket.send(frame);
    }
  }

  /** Closes this dial's socket, if it still is the one. */
  hangUp(dial: number, code: number): void {
    if (this.#current?.dial === dial) {
      this.abandon(code);
    }
  }

  /** The socket closes in its own time; nobody listens any longer. */
  abandon(code?: number): void {
    const socket = this.#current?.socket;
    this.#current = undefined;
    if (socket !== undefined) {
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = null;
      socket.onerror = nothing;
      socket.close(code);
    }
  }

  #opened(dial: number, socket: WebSocketLike): void {
    if (socket.protocol === SUBPROTOCOL) {
      this.#events.opened(dial);
    } else {
      this.abandon();
      this.#events.closed(dial, WRONG_SUBPROTOCOL);
    }
  }
}

function nothing(): void {
  // Where there is nothing to do.
}

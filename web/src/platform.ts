/** What a session needs of the browser or of Node: time, randomness, wake-ups, sockets. Tests bring their own. */

/** The part of a WebSocket that is used. The browser's and that of the `ws` package both have it. */
export interface WebSocketLike {
  readonly readyState: number;
  readonly protocol: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number): void;
}

/** `WebSocket`, or `ws` in a Node without one. */
export type WebSocketConstructor = new (url: string, protocol: string) => WebSocketLike;

export interface Platform {
  /** Milliseconds that only grow. */
  now(): number;
  /** Calls back once after the delay, unless the function that is returned is called first. */
  after(delayMs: number, callback: () => void): () => void;
  /** In [0, 1). */
  random(): number;
  /** Calls back when the network comes back or the page becomes visible. Returns a function that ends it. */
  onWake(callback: () => void): () => void;
  /** Throws when there is none. */
  webSocket(): WebSocketConstructor;
}

/** Browser and Node. */
export const realPlatform: Platform = {
  now: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
  random: () => Math.random(),
  onWake,
  webSocket() {
    const found = (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
    if (found === undefined) {
      throw new TypeError("no WebSocket here: pass one as the option webSocket");
    }
    return found;
  },
};

function onWake(callback: () => void): () => void {
  const page = (globalThis as { document?: Document }).document;
  if (page === undefined) {
    return () => undefined;
  }
  const whenVisible = (): void => {
    if (page.visibilityState === "visible") {
      callback();
    }
  };
  globalThis.addEventListener("online", callback);
  page.addEventListener("visibilitychange", whenVisible);
  return () => {
    globalThis.removeEventListener("online", callback);
    page.removeEventListener("visibilitychange", whenVisible);
  };
}

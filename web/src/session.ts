/**
 * A signaling session in a page or in Node: the thin shell around {@link SignalCore}. It owns the socket and the one
 * timer, seals and opens, and hands events to the application.
 *
 *     send(message) -> seal -> core -> socket          socket -> core -> open -> "message" event -> acknowledged
 *
 * Messages wait, unacknowledged at the relay, until somebody listens to them. Nothing that is thrown or emitted as an
 * error holds a ticket, a secret or content.
 */

import { randomBytes, toHex } from "./bytes.js";
import { SignalCore } from "./core.js";
import type {
  ClosedEvent,
  ConnectionState,
  CoreEvent,
  Delivery,
  Effect,
  PeerEvent,
  WelcomeEvent,
} from "./core-types.js";
import { Emitter } from "./emitter.js";
import { plainEnvelope, sealedEnvelope, writeMessage, type Envelope, type SignalMessage } from "./envelope.js";
import type { IceServer, Mood, PresenceState } from "./frames.js";
import { realPlatform, type Platform } from "./platform.js";
import { Presence } from "./presence.js";
import { SendError, type SessionEvents, type SessionOptions } from "./session-types.js";
import { SECRET_BYTES, type Slot } from "./signal-seal.js";
import { Socket } from "./socket.js";

const CONNECTION_ID_BYTES = 16;
/** Calls of `send` that may wait for room, besides what the outbox holds: as much again as fills it by default. */
const SENDERS_MAX = 256;

export class Session extends Emitter<SessionEvents> {
  readonly #options: SessionOptions;
  readonly #platform: Platform;
  readonly #core: SignalCore;
  readonly #socket: Socket;
  readonly #envelope = deferred<Envelope | undefined>();
  readonly #listening = deferred<undefined>();
  /** Is there while a `send` waits for room. */
  #room: Deferred<undefined> | undefined;
  #stopTimer: () => void = nothing;
  #stopWaking: () => void = nothing;
  #sending: Promise<unknown> = Promise.resolve();
  #handing: Promise<unknown> = Promise.resolve();
  #unsealed = 0;
  #state: ConnectionState = "new";
  #peer: PresenceState = "absent";
  readonly #presence = new Presence();
  #slot: Slot | undefined;
  #iceServers: readonly IceServer[] = [];
  #left = false;

  /** Throws when an option can't be right, and in a Node without `WebSocket` when none is given. */
  constructor(options: SessionOptions) {
    super();
    check(options);
    this.#options = options;
    this.#platform = { ...realPlatform, ...options.platform };
    this.#core = new SignalCore({
      ticket: options.ticket,
      connectionId: toHex(randomBytes(CONNECTION_ID_BYTES)),
      random: () => this.#platform.random(),
    });
    this.#socket = new Socket(options.url, options.webSocket ?? this.#platform.webSocket(), {
      opened: (dial) => {
        this.#perform(this.#core.opened(dial, this.#platform.now()));
      },
      received: (dial, data) => {
        this.#perform(this.#core.received(dial, data, this.#platform.now()));
      },
      closed: (dial, code) => {
        this.#perform(this.#core.closed(dial, code, this.#platform.now()));
      },
    });
  }

  /** Where the connection to the relay stands. */
  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether the peer is there. */
  get peer(): PresenceState {
    return this.#peer;
  }

  /** Known from the first welcome on. */
  get slot(): Slot | undefined {
    return this.#slot;
  }

  /** TURN servers with their latest credentials, for a session made with `turn: true`. */
  get iceServers(): readonly IceServer[] {
    return this.#iceServers;
  }

  /** Messages that the relay has not stored yet. */
  get pending(): number {
    return this.#unsealed + this.#core.unacknowledged;
  }

  /** Dials, and keeps at it until the session is over or `close` is called. Listen to events before. */
  start(): this {
    if (this.#state === "new") {
      this.#stopWaking = this.#platform.onWake(() => {
        this.#perform(this.#core.wake(this.#platform.now()));
      });
      this.#perform(this.#core.start(this.#platform.now()));
    }
    return this;
  }

  override on<Type extends keyof SessionEvents>(
    type: Type,
    listener: (event: SessionEvents[Type]) => void,
  ): () => void {
    if (type === "message") {
      this.#listening.resolve(undefined);
    }
    return super.on(type, listener);
  }

  /**
   * Sends a message, connected or not. Resolves when it is sealed and in line for the relay; what is in line survives
   * lost connections. Waits for the first welcome, which tells what to seal as, and while the line is full: a loop that
   * awaits each call goes as fast as the relay. Rejects with a {@link SendError}; when the session ends, with `closed`.
   */
  async send(message: SignalMessage): Promise<void> {
    const text = writeMessage(message);
    if (text === undefined) {
      throw new SendError("not_json");
    }
    if (this.#state === "new" || this.#state === "closed") {
      throw new SendError(this.#state === "new" ? "not_started" : "closed");
    }
    if (this.#unsealed >= SENDERS_MAX) {
      throw new SendError("outbox_full");
    }
    this.#unsealed += 1;
    const sent = this.#sending.then(() => this.#seal(text));
    this.#sending = sent.catch(nothing);
    return sent;
  }

  /** Asks for fresh TURN credentials; an `ice` event brings them. At most one request per 30 s leaves. */
  refreshIce(): void {
    this.#perform(this.#core.refreshIce(this.#platform.now()));
  }

  /** Leaves for good and tells the peer. What the relay hasn't stored is dropped: see {@link pending}. */
  close(mood: Mood = "cancelled"): void {
    this.#left = true;
    this.#perform(this.#core.close(mood, this.#platform.now()));
  }

  async #seal(text: string): Promise<void> {
    try {
      const envelope = await this.#envelope.promise;
      if (envelope === undefined) {
        throw new SendError("closed");
      }
      await this.#untilRoom();
      const d = await envelope.wrap(text, this.#core.room.longest);
      if (d === undefined) {
        throw new SendError("too_large");
      }
      const { effects, fault } = this.#core.send(d, this.#platform.now());
      this.#perform(effects);
      if (fault !== undefined) {
        throw new SendError(fault);
      }
    } finally {
      this.#unsealed -= 1;
    }
  }

  async #untilRoom(): Promise<void> {
    while (this.#core.room.isFull && this.#state !== "closed") {
      this.#room ??= deferred();
      await this.#room.promise;
    }
  }

  #perform(effects: readonly Effect[]): void {
    for (const effect of effects) {
      switch (effect.do) {
        case "dial":
          this.#socket.dial(effect.dial);
          break;
        case "transmit":
          this.#socket.transmit(effect.dial, effect.frame);
          break;
        case "hang-up":
          this.#socket.hangUp(effect.dial, effect.code);
          break;
        case "emit":
          this.#tell(effect.event);
          break;
        case "deliver":
          this.#handing = this.#handing.then(() => this.#hand(effect));
          break;
      }
    }
    this.#arm();
    this.#callSenders();
  }

  /** Room is made by acknowledgements, by a welcome that allows more, and by the end. */
  #callSenders(): void {
    if (this.#room !== undefined && (!this.#core.room.isFull || this.#state === "closed")) {
      this.#room.resolve(undefined);
      this.#room = undefined;
    }
  }

  #tell(event: CoreEvent): void {
    switch (event.type) {
      case "state":
        this.#state = event.state;
        break;
      case "welcome":
        this.#welcomed(event);
        break;
      case "peer":
        if (this.#presence.noticed(event)) {
          this.#show(event);
        }
        return;
      case "closed":
        this.#finish(event);
        return;
      case "ice":
        this.#iceServers = event.iceServers;
        break;
      case "refused":
      case "goaway":
      case "violation":
        break;
    }
    this.emit(event);
  }

  #show(event: PeerEvent): void {
    this.#peer = event.state;
    this.emit(event);
  }

  #welcomed(event: WelcomeEvent): void {
    this.#iceServers = event.iceServers;
    if (this.#slot === undefined) {
      const { secret, sessionId } = this.#options;
      this.#slot = event.slot;
      this.#envelope.resolve(secret === "unsealed" ? plainEnvelope() : sealedEnvelope(secret, sessionId, event.slot));
    }
  }

  #finish(event: ClosedEvent): void {
    this.#stopWaking();
    this.#socket.abandon();
    this.#envelope.resolve(undefined);
    this.#listening.resolve(undefined);
    // What came before the end is handed on before the end is told.
    this.#handing = this.#handing.then(() => {
      this.emit(event);
    });
  }

  async #hand({ seq, generation, restarted, item }: Delivery): Promise<void> {
    await this.#listening.promise;
    const envelope = await this.#envelope.promise;
    if (this.#left || envelope === undefined) {
      return;
    }
    if (restarted) {
      this.emit({ type: "restart", generation });
    }
    if (item?.type === "peer") {
      this.#show(this.#presence.announced(item));
    } else if (item !== undefined) {
      await this.#unwrap(envelope, item.d, generation);
    }
    this.#perform(this.#core.done(seq, this.#platform.now()));
  }

  async #unwrap(envelope: Envelope, d: string, generation: number): Promise<void> {
    const unwrapped = await envelope.unwrap(d, generation);
    if (this.#left) {
      return;
    }
    if (!unwrapped.ok) {
      this.emit({ type: "violation", reason: unwrapped.reason });
      return;
    }
    if (unwrapped.missing > 0) {
      this.emit({ type: "violation", reason: "gap", missing: unwrapped.missing });
    }
    this.emit({ type: "message", ...unwrapped.message });
  }

  #arm(): void {
    this.#stopTimer();
    const { deadline } = this.#core;
    if (deadline < Infinity) {
      this.#stopTimer = this.#platform.after(Math.max(0, deadline - this.#platform.now()), () => {
        this.#perform(this.#core.timer(this.#platform.now()));
      });
    }
  }
}

function check({ url, secret }: SessionOptions): void {
  if (!/^wss?:\/\//.test(url)) {
    throw new TypeError("the session's url must begin with wss:// or ws://");
  }
  if (secret !== "unsealed" && secret.length !== SECRET_BYTES) {
    throw new RangeError("the end-to-end secret must have 32 bytes");
  }
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = nothing;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

function nothing(): void {
  // Where there is nothing to do.
}

/**
 * A signaling session in a page or in Node: the thin shell around {@link SignalCore}. It owns the socket and the one
 * timer, seals and opens, and hands events to the application.
 *
 *     send(message) -> seal -> core -> socket          socket -> core -> open -> "message" event -> acknowledged
 *
 * Messages wait, unacknowledged at the relay, until somebody listens to them. Nothing that is thrown or emitted as an
 * error holds a ticket, a secret or content.
 */
import type { ConnectionState } from "./core-types.js";
import { Emitter } from "./emitter.js";
import { type SignalMessage } from "./envelope.js";
import type { IceServer, Mood, PresenceState } from "./frames.js";
import { type SessionEvents, type SessionOptions } from "./session-types.js";
import { type Slot } from "./signal-seal.js";
export declare class Session extends Emitter<SessionEvents> {
    #private;
    /** Throws when an option can't be right, and in a Node without `WebSocket` when none is given. */
    constructor(options: SessionOptions);
    /** Where the connection to the relay stands. */
    get state(): ConnectionState;
    /** Whether the peer is there. */
    get peer(): PresenceState;
    /** Known from the first welcome on. */
    get slot(): Slot | undefined;
    /** TURN servers with their latest credentials, for a session made with `turn: true`. */
    get iceServers(): readonly IceServer[];
    /** Messages that the relay has not stored yet. */
    get pending(): number;
    /** Dials, and keeps at it until the session is over or `close` is called. Listen to events before. */
    start(): this;
    on<Type extends keyof SessionEvents>(type: Type, listener: (event: SessionEvents[Type]) => void): () => void;
    /**
     * Sends a message, connected or not. Resolves when it is sealed and in line for the relay; what is in line survives
     * lost connections. Waits for the first welcome, which tells what to seal as, and while the line is full: a loop that
     * awaits each call goes as fast as the relay. Rejects with a {@link SendError}; when the session ends, with `closed`.
     */
    send(message: SignalMessage): Promise<void>;
    /** Asks for fresh TURN credentials; an `ice` event brings them. At most one request per 30 s leaves. */
    refreshIce(): void;
    /** Leaves for good and tells the peer. What the relay hasn't stored is dropped: see {@link pending}. */
    close(mood?: Mood): void;
}

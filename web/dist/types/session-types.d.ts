/** What a session takes and tells. */
import type { ClosedEvent, GoawayEvent, IceEvent, PeerEvent, RefusedEvent, StateEvent, ViolationEvent, WelcomeEvent } from "./core-types.js";
import type { Received } from "./envelope.js";
import type { Platform, WebSocketConstructor } from "./platform.js";
/** What a session is made with. */
export interface SessionOptions {
    /** As the relay gave it when the session was made: `wss://.../v1/signal`. */
    readonly url: string;
    readonly sessionId: string;
    /** This side's ticket. */
    readonly ticket: string;
    /** The end-to-end secret k, 32 bytes that the relay never sees; or `"unsealed"`, for sessions that allow it. */
    readonly secret: Uint8Array | "unsealed";
    /** For a Node without `WebSocket`: that of the package `ws`. */
    readonly webSocket?: WebSocketConstructor;
    /** For tests. */
    readonly platform?: Partial<Platform>;
}
/** A message of the peer. */
export interface MessageEvent extends Received {
    readonly type: "message";
}
/** The peer reloaded: whatever comes next is from a page that knows nothing of the one before. */
export interface RestartEvent {
    readonly type: "restart";
    readonly generation: number;
}
/** Everything that a session tells. `message`, `restart` and sequenced `peer` events come in the order of sending. */
export interface SessionEvents {
    state: StateEvent;
    welcome: WelcomeEvent;
    peer: PeerEvent;
    restart: RestartEvent;
    message: MessageEvent;
    ice: IceEvent;
    refused: RefusedEvent;
    goaway: GoawayEvent;
    violation: ViolationEvent;
    closed: ClosedEvent;
}
/** Why a message could not be sent. */
export type SendFault = 
/** `start` was not called. */
"not_started"
/** The session is over, or was while the message waited. */
 | "closed"
/** 256 earlier calls of `send` still wait. Who awaits each call never sees it. */
 | "outbox_full"
/** The relay would never take it. */
 | "too_large" | "not_json";
/** A message was not sent. It quotes no content. */
export declare class SendError extends Error {
    readonly name = "SendError";
    readonly code: SendFault;
    constructor(code: SendFault);
}

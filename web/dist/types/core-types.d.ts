/** What goes out of the core, and the phases it is in. */
import type { CloseReason } from "./close-codes.js";
import type { IceServer, PresenceState, RefusalCode, Role, SessionLimits } from "./frames.js";
import type { Heartbeat } from "./heartbeat.js";
import type { Rejection, Slot } from "./signal-seal.js";
/** What a core is made with. */
export interface CoreOptions {
    readonly ticket: string;
    /** 32 hexadecimal digits, drawn for this page load and never stored. */
    readonly connectionId: string;
    /** In [0, 1). Spreads dials; no secret hangs on it. */
    readonly random: () => number;
}
/** `patient`: a wake-up doesn't shorten the wait, since the relay asked for it. `moveAt`: a `goaway` runs until then. */
export type Phase = {
    readonly name: "new";
} | {
    readonly name: "dialing";
    deadline: number;
} | {
    readonly name: "live";
    readonly since: number;
    readonly heartbeat: Heartbeat;
    moveAt: number;
} | {
    readonly name: "waiting";
    readonly until: number;
    readonly patient: boolean;
} | {
    readonly name: "closed";
};
/** What the shell does for the core, in this order. */
export type Effect = {
    readonly do: "dial";
    readonly dial: number;
} | {
    readonly do: "transmit";
    readonly dial: number;
    readonly frame: string;
} | {
    readonly do: "hang-up";
    readonly dial: number;
    readonly code: number;
} | {
    readonly do: "emit";
    readonly event: CoreEvent;
} | Delivery;
/** Something of the relay's sequence, in order; the shell says `done(seq)` when the application has had it. */
export interface Delivery {
    readonly do: "deliver";
    readonly seq: number;
    /** The peer's generation. */
    readonly generation: number;
    /** A page load of the peer took another's place just before this. */
    readonly restarted: boolean;
    /** Absent where only the number counts. */
    readonly item: Sequenced | undefined;
}
export type Sequenced = {
    readonly type: "message";
    readonly d: string;
} | PeerEvent;
/** Whether the peer is there. */
export interface PeerEvent {
    readonly type: "peer";
    readonly state: PresenceState;
    readonly generation: number;
}
/** Connected, for the first time or again. */
export interface WelcomeEvent {
    readonly type: "welcome";
    /** False on the first welcome. */
    readonly resumed: boolean;
    readonly slot: Slot;
    readonly role: Role;
    /** Which page load of this slot we are. */
    readonly generation: number;
    readonly expiresAt: string;
    readonly limits: SessionLimits;
    readonly iceServers: readonly IceServer[];
}
/** Where the connection to the relay stands. */
export type ConnectionState = "new" | "connecting" | "live" | "waiting" | "closed";
export interface StateEvent {
    readonly type: "state";
    readonly state: ConnectionState;
    /** Of `waiting`: until the next dial. */
    readonly retryInMs?: number;
}
/** Fresh TURN credentials, as asked for. */
export interface IceEvent {
    readonly type: "ice";
    readonly iceServers: readonly IceServer[];
    readonly expiresAt: string | undefined;
}
/** The relay takes no messages for a while. Nothing is lost: they are sent again. */
export interface RefusedEvent {
    readonly type: "refused";
    readonly code: RefusalCode;
    readonly retryMs: number;
}
/** The relay is going down for maintenance; the session moves by itself. */
export interface GoawayEvent {
    readonly type: "goaway";
    readonly inMs: number;
}
/** What an honest relay does not do. The frame concerned was not taken, but for a `gap`, which comes before one. */
export type ViolationReason = Rejection
/** Messages of the peer are missing. */
 | "gap" | "repeated" | "sequence_gap" | "flood" | "stale_generation" | "malformed_frame"
/** Authentic, but not a message that this library knows the form of. */
 | "malformed_message" | "acknowledged_unsent" | "out_of_step";
export interface ViolationEvent {
    readonly type: "violation";
    readonly reason: ViolationReason;
    /** Of a `gap`: how many. */
    readonly missing?: number;
}
/** The session is over for this side; nothing comes after it. */
export interface ClosedEvent {
    readonly type: "closed";
    readonly reason: CloseReason;
    /** The WebSocket close code, if the relay closed it. */
    readonly code: number | undefined;
}
export type CoreEvent = WelcomeEvent | PeerEvent | StateEvent | IceEvent | RefusedEvent | GoawayEvent | ViolationEvent | ClosedEvent;

/**
 * Connects an `RTCPeerConnection` through a session: `connect(() => new RTCPeerConnection(), session)`.
 *
 * The role comes with the relay's welcome, so both sides call the same thing. When a page reloads, the other side's
 * connection to the page that is gone can't be mended (other keys), so both need a new one, and have to agree on which
 * belong together while messages of the old ones still arrive. The impolite side decides: it names a *pairing*, and
 * another one when the peer's page is another. Every negotiation carries the name.
 *
 *     impolite: begin -> name a pairing; peer reloaded, and our leg is used -> new leg, new pairing
 *               message of another pairing -> dropped
 *     polite:   message of another pairing -> new leg for it, unless ours is unused; no offer before the first
 *
 * A peer that doesn't use this helper names no pairings. Its messages are for the leg that is there; an offer of another
 * `RTCPeerConnection` of it makes a new one.
 *
 * Invariant: everything that changes a negotiation runs one after the other, in the order in which it came; and both
 * sides end up with the pairing that the impolite side named last, since its messages come in order.
 */
import { Emitter } from "./emitter.js";
import { type LegProblem } from "./leg.js";
import type { Session } from "./session.js";
/** Makes an `RTCPeerConnection` with all that it shall carry: channels, tracks, listeners. */
export type MakePeerConnection = () => RTCPeerConnection;
/** What went wrong. The negotiation goes on as far as it can. */
export type ConnectProblem = LegProblem
/** The peer reloaded, and the one `RTCPeerConnection` we were given is used up: pass a function instead. */
 | "needs_new_connection"
/** The session took no more messages. */
 | "not_sent";
export interface ConnectionEvents {
    /** The peer reloaded: the connection before is closed, and this one negotiates in its place. */
    replaced: {
        readonly type: "replaced";
        readonly peerConnection: RTCPeerConnection;
    };
    problem: {
        readonly type: "problem";
        readonly reason: ConnectProblem;
    };
}
/**
 * Negotiates until `close` is called or the session is over. Starts the session if that was not done. TURN servers of
 * the relay are added to those that the application configured.
 *
 * Given one `RTCPeerConnection` instead of a function, it can't follow a reload of the peer after the first answer; and
 * it must be given before the browser says `negotiationneeded`, so in the turn that made it.
 */
export declare function connect(peerConnection: RTCPeerConnection | MakePeerConnection, session: Session): Connection;
export declare class Connection extends Emitter<ConnectionEvents> {
    #private;
    /** The one in use. */
    get peerConnection(): RTCPeerConnection;
    /** Stops negotiating. Leaves the `RTCPeerConnection` and the session as they are. */
    close(): void;
}

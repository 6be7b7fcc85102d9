/**
 * Negotiation over one `RTCPeerConnection`: the pattern of "perfect negotiation" (WebRTC 1.0, 10.7), with messages that
 * name the negotiation they belong to. {@link Connection} owns it and calls one method at a time.
 *
 *     negotiationneeded -> offer ----> take(offer) -> answer ----> take(answer)
 *     icecandidate -> candidate ----> take(candidate): applied once its description is, until then kept
 *
 * Invariant: an answer is applied to the offer it answers and to no other, and a candidate to the description it was
 * gathered for. On a collision of offers the polite side's is rolled back; the impolite side ignores the other's.
 */
import type { SignalMessage } from "./envelope.js";
/** What went wrong with one message. The negotiation goes on without it. */
export type LegProblem = 
/** An answer to an offer that is no longer ours. */
"stale_answer"
/** Not a description or candidate. */
 | "malformed" | "description_refused" | "candidate_refused" | "too_many_candidates"
/** The browser could not make an offer. */
 | "offer_failed";
/** What a leg needs of its owner. */
export interface LegOwner {
    polite(): boolean;
    send(message: SignalMessage): void;
    report(problem: LegProblem): void;
    /** A name for a new negotiation. */
    nameNegotiation(): string;
    /** There is something to negotiate: the owner calls `offer` when it is the time. */
    wantsOffer(leg: Leg): void;
    /** ICE found no way, or no longer has one. */
    failed(): void;
}
export declare class Leg {
    #private;
    readonly peerConnection: RTCPeerConnection;
    constructor(peerConnection: RTCPeerConnection, owner: LegOwner);
    /** A description of the peer is applied: this leg is bound to the peer's page load. */
    get bound(): boolean;
    /** Something was negotiated or tried: it can't serve another peer connection. */
    get used(): boolean;
    /** True when this offer comes from another `RTCPeerConnection` than the one we are bound to. */
    isFromAnother(value: unknown): boolean;
    /** Stops, for good. What is under way leads to nothing any more. */
    retire(): void;
    /** Makes an offer, unless another negotiation is under way or has settled what there was to offer. */
    offer(): Promise<void>;
    /** Takes a message of the peer. */
    take({ kind, negotiation, value }: SignalMessage): Promise<void>;
    /** Offers again what the peer's earlier page load can't have answered. */
    offerAgain(): void;
}

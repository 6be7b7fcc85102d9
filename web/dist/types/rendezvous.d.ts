/**
 * Two sides that share a secret meet at a session neither has told the other about: both derive the same rendezvous,
 * which the relay is given, and the same end-to-end secret k, which it is not. Neither leads to the other, nor back.
 */
/** What both sides derive. */
export interface Rendezvous {
    /** For the `rendezvous` field of the call that makes the session. */
    readonly rendezvous: string;
    /** k, for the session's `secret`. Never given to the relay. */
    readonly secret: Uint8Array;
}
/** Derives both values from the shared secret, 16 random bytes or more. */
export declare function deriveRendezvous(sharedSecret: Uint8Array): Promise<Rendezvous>;

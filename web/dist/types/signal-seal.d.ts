/**
 * End-to-end sealing of signaling messages: the relay carries them and can neither read nor change them.
 *
 *     e1.<base64url r>.<decimal m>.<base64url(ciphertext | tag)>
 *     key = HKDF-SHA256(k, salt = utf8(sessionId) | r, info = "sov1|" + sender's slot, 32 bytes)
 *     AES-256-GCM, nonce = m as a 96-bit counter, associated data = utf8("sessionId|slot|r|m")
 *
 * A *load* is one life of the sender's page: it draws r once and counts m from 1. The session makes one
 * {@link SignalSealer} and one {@link SignalOpener}.
 *
 * Invariant of the opener: m grows within a load, a new load is taken only once a frame of it authenticates, and a
 * load that was left never comes back. So a hostile relay can drop or delay, which shows as a gap, and nothing else.
 */
/** Length of k. */
export declare const SECRET_BYTES = 32;
/** A side of the session. */
export type Slot = "a" | "b";
/** What both ends of a session's sealing start from. */
export interface SealingSecret {
    /** k, 32 bytes. */
    readonly secret: Uint8Array;
    readonly sessionId: string;
}
/** Why a frame was not taken. */
export type Rejection = "not_sealed" | "not_authentic" | "replayed" | "retired_load" | "too_many_loads";
/** A frame that was opened, or why not. */
export type Opened = {
    readonly ok: true;
    readonly text: string;
    /** Which of the peer's page loads it comes from, counted from 1. */
    readonly load: number;
    /** How many frames of this load are missing before this one. */
    readonly missing: number;
} | {
    readonly ok: false;
    readonly rejection: Rejection;
};
/** A new end-to-end secret k. */
export declare function newSecret(): Uint8Array;
/** How long a text is once it is sealed, at most; `undefined` when it is longer than the longest padding. */
export declare function sealedLength(text: string): number | undefined;
/** Seals what one page load sends. */
export declare class SignalSealer {
    #private;
    /** `load` is for the vectors; otherwise it is drawn here and never stored. */
    constructor(secret: SealingSecret, slot: Slot, load?: Uint8Array);
    /** Seals the next message; `undefined` when it is longer than 16 KiB. Calls count in the order they are made. */
    seal(text: string): Promise<string | undefined>;
}
/** Opens what the other slot sends. Calls must not overlap: the order of frames is what it guards. */
export declare class SignalOpener {
    #private;
    constructor(secret: SealingSecret, ownSlot: Slot);
    /** Opens the next frame. */
    open(frame: string): Promise<Opened>;
}

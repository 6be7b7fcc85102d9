/**
 * The sealed push payload: what an instance makes and only the device can open. Instances call {@link seal}, devices
 * {@link open}; the relay calls neither.
 *
 *     base64( ephemeral public key, 65 bytes | IV, 12 | tag, 16 | ciphertext )
 *     key = HKDF-SHA256(ECDH P-256(ephemeral, device), empty salt, "sovereign-push-v1", 32 bytes)
 *     ciphertext, tag = AES-256-GCM(key, IV, JSON padded with spaces), no associated data
 *
 * Invariant: nothing is returned from `open` that was not authenticated. RFC 5869, NIST SP 800-38D, SEC 1.
 */
/**
 * The lengths a notification is padded to, in bytes. The last is the longest that can be sealed: in base64 and in
 * its envelope it fits every provider.
 */
export declare const PADDED_BYTES: readonly number[];
/** Why a notification could not be sealed. */
export type SealFault = "too_large" | "not_json" | "not_a_device_key";
/** Why a payload could not be opened. Which step failed is for the developer, not for an answer to anyone. */
export type OpenFault = "not_base64" | "too_short" | "not_a_point" | "not_authentic" | "not_utf8";
/** The notification could not be sealed. It quotes no content. */
export declare class SealError extends Error {
    readonly name = "SealError";
    readonly code: SealFault;
    constructor(code: SealFault);
}
/** The payload could not be opened. It quotes no content. */
export declare class OpenError extends Error {
    readonly name = "OpenError";
    readonly code: OpenFault;
    constructor(code: OpenFault);
}
/** Seals a notification, any value that JSON can hold, for the device with this public key (base64, 65 bytes). */
export declare function seal(notification: unknown, devicePublicKey: string): Promise<string>;
/** Opens a payload with the device's private key; gives the JSON text. */
export declare function open(payload: string, devicePrivateKey: CryptoKey): Promise<string>;
/** A device's new key pair; `extractable` only when the private half must be kept outside the browser's key store. */
export declare function generateDeviceKey(extractable?: boolean): Promise<CryptoKeyPair>;
/** The public half as devices register it: base64 of the 65-byte point. */
export declare function exportDevicePublicKey(publicKey: CryptoKey): Promise<string>;
/** A device's private key from its 32-byte scalar and its public half (base64), not exportable again. */
export declare function importDeviceKey(scalar: Uint8Array, publicKey: string): Promise<CryptoKey>;

/** The two primitives that both sealed formats are made of, over WebCrypto: HKDF-SHA256 and AES-256-GCM. */
import { type Bytes } from "./bytes.js";
/** Length of GCM's tag. WebCrypto writes it behind the ciphertext. */
export declare const TAG_BYTES = 16;
/** HKDF-SHA256, 32 bytes. RFC 5869. */
export declare function hkdf(secret: Bytes, salt: Bytes, info: Bytes): Promise<Bytes>;
/** An AES-256-GCM key that can't be exported again. */
export declare function aesKey(bytes: Bytes): Promise<CryptoKey>;
/** Ciphertext, then tag. */
export declare function encrypt(key: CryptoKey, nonce: Bytes, text: Bytes, associated?: Uint8Array<ArrayBuffer>): Promise<Bytes>;
/** The text, or `undefined` when it is not authentic. */
export declare function decrypt(key: CryptoKey, nonce: Bytes, ciphertext: Bytes, associated?: Uint8Array<ArrayBuffer>): Promise<Bytes | undefined>;
/** `count` as a 96-bit big-endian nonce. */
export declare function counterNonce(count: number): Bytes;

/** The two primitives that both sealed formats are made of, over WebCrypto: HKDF-SHA256 and AES-256-GCM. */

import { concat, type Bytes } from "./bytes.js";

/** Length of GCM's tag. WebCrypto writes it behind the ciphertext. */
export const TAG_BYTES = 16;

/** HKDF-SHA256, 32 bytes. RFC 5869. */
export async function hkdf(secret: Bytes, salt: Bytes, info: Bytes): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const parameters = { name: "HKDF", hash: "SHA-256", salt, info };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, 256));
}

/** An AES-256-GCM key that can't be exported again. */
export async function aesKey(bytes: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** Ciphertext, then tag. */
export async function encrypt(key: CryptoKey, nonce: Bytes, text: Bytes, associated = new Uint8Array()): Promise<Bytes> {
  const parameters = { name: "AES-GCM", iv: nonce, additionalData: associated };
  return new Uint8Array(await crypto.subtle.encrypt(parameters, key, text));
}

/** The text, or `undefined` when it is not authentic. */
export async function decrypt(
  key: CryptoKey,
  nonce: Bytes,
  ciphertext: Bytes,
  associated = new Uint8Array(),
): Promise<Bytes | undefined> {
  const parameters = { name: "AES-GCM", iv: nonce, additionalData: associated };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(parameters, key, ciphertext));
  } catch {
    // WebCrypto says no more than "operation failed", and neither must we.
    return undefined;
  }
}

/** `count` as a 96-bit big-endian nonce. */
export function counterNonce(count: number): Bytes {
  const low = new Uint8Array(8);
  new DataView(low.buffer).setBigUint64(0, BigInt(count));
  return concat(new Uint8Array(4), low);
}

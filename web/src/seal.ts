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

import { concat, fromBase64, fromUtf8, padTo, randomBytes, toBase64, toBase64Url, utf8, type Bytes } from "./bytes.js";
import { TAG_BYTES, aesKey, decrypt, encrypt, hkdf } from "./cipher.js";

const POINT_BYTES = 65;
const SCALAR_BYTES = 32;
const IV_BYTES = 12;
const UNCOMPRESSED = 0x04;
const INFO = utf8("sovereign-push-v1");
const CURVE = { name: "ECDH", namedCurve: "P-256" };

/**
 * The lengths a notification is padded to, in bytes. The last is the longest that can be sealed: in base64 and in
 * its envelope it fits every provider.
 */
export const PADDED_BYTES: readonly number[] = [256, 512, 1024, 1792, 2560];

/** Why a notification could not be sealed. */
export type SealFault = "too_large" | "not_json" | "not_a_device_key";

/** Why a payload could not be opened. Which step failed is for the developer, not for an answer to anyone. */
export type OpenFault = "not_base64" | "too_short" | "not_a_point" | "not_authentic" | "not_utf8";

/** The notification could not be sealed. It quotes no content. */
export class SealError extends Error {
  override readonly name = "SealError";
  readonly code: SealFault;

  constructor(code: SealFault) {
    super(SEAL_SENTENCES[code]);
    this.code = code;
  }
}

/** The payload could not be opened. It quotes no content. */
export class OpenError extends Error {
  override readonly name = "OpenError";
  readonly code: OpenFault;

  constructor(code: OpenFault) {
    super(OPEN_SENTENCES[code]);
    this.code = code;
  }
}

const SEAL_SENTENCES: Record<SealFault, string> = {
  too_large: "the notification is longer than 2560 bytes of JSON",
  not_json: "the notification can't be written as JSON",
  not_a_device_key: "the device key must be base64 of an uncompressed P-256 point",
};

const OPEN_SENTENCES: Record<OpenFault, string> = {
  not_base64: "the payload is not base64",
  too_short: "the payload is too short",
  not_a_point: "the payload's key is not an uncompressed P-256 point",
  not_authentic: "the payload was made for another device, or changed on the way",
  not_utf8: "the payload is authentic, but not UTF-8",
};

/** Seals a notification, any value that JSON can hold, for the device with this public key (base64, 65 bytes). */
export async function seal(notification: unknown, devicePublicKey: string): Promise<string> {
  const padded = padTo(PADDED_BYTES, asJson(notification));
  if (padded === undefined) {
    throw new SealError("too_large");
  }
  const ephemeral = await crypto.subtle.generateKey(CURVE, true, ["deriveBits"]);
  return sealWith(padded, devicePublicKey, ephemeral, randomBytes(IV_BYTES));
}

/** Opens a payload with the device's private key; gives the JSON text. */
export async function open(payload: string, devicePrivateKey: CryptoKey): Promise<string> {
  const bytes = fromBase64(payload);
  if (bytes === undefined) {
    throw new OpenError("not_base64");
  }
  if (bytes.length < POINT_BYTES + IV_BYTES + TAG_BYTES) {
    throw new OpenError("too_short");
  }
  const iv = bytes.slice(POINT_BYTES, POINT_BYTES + IV_BYTES);
  const tag = bytes.slice(POINT_BYTES + IV_BYTES, POINT_BYTES + IV_BYTES + TAG_BYTES);
  const ciphertext = bytes.slice(POINT_BYTES + IV_BYTES + TAG_BYTES);
  const ephemeral = await point(bytes.slice(0, POINT_BYTES));
  if (ephemeral === undefined) {
    throw new OpenError("not_a_point");
  }
  const plaintext = await decrypt(await sharedKey(devicePrivateKey, ephemeral), iv, concat(ciphertext, tag));
  if (plaintext === undefined) {
    throw new OpenError("not_authentic");
  }
  const text = fromUtf8(plaintext);
  if (text === undefined) {
    throw new OpenError("not_utf8");
  }
  return text;
}

/** A device's new key pair; `extractable` only when the private half must be kept outside the browser's key store. */
export async function generateDeviceKey(extractable = false): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(CURVE, extractable, ["deriveBits"]);
}

/** The public half as devices register it: base64 of the 65-byte point. */
export async function exportDevicePublicKey(publicKey: CryptoKey): Promise<string> {
  return toBase64(new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)));
}

/** A device's private key from its 32-byte scalar and its public half (base64), not exportable again. */
export async function importDeviceKey(scalar: Uint8Array, publicKey: string): Promise<CryptoKey> {
  const whole = fromBase64(publicKey);
  if (whole?.length !== POINT_BYTES || whole[0] !== UNCOMPRESSED || scalar.length !== SCALAR_BYTES) {
    throw new SealError("not_a_device_key");
  }
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: toBase64Url(scalar),
    x: toBase64Url(whole.subarray(1, 1 + SCALAR_BYTES)),
    y: toBase64Url(whole.subarray(1 + SCALAR_BYTES)),
  };
  try {
    return await crypto.subtle.importKey("jwk", jwk, CURVE, false, ["deriveBits"]);
  } catch {
    throw new SealError("not_a_device_key");
  }
}

/** @internal With everything that is random given; for the vectors. */
export async function sealWith(
  plaintext: Bytes,
  devicePublicKey: string,
  ephemeral: CryptoKeyPair,
  iv: Bytes,
): Promise<string> {
  const bytes = fromBase64(devicePublicKey);
  const device = bytes === undefined ? undefined : await point(bytes);
  if (device === undefined) {
    throw new SealError("not_a_device_key");
  }
  const sealed = await encrypt(await sharedKey(ephemeral.privateKey, device), iv, plaintext);
  const ephemeralPoint = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const tag = sealed.subarray(sealed.length - TAG_BYTES);
  return toBase64(concat(ephemeralPoint, iv, tag, sealed.subarray(0, sealed.length - TAG_BYTES)));
}

async function sharedKey(ours: CryptoKey, theirs: CryptoKey): Promise<CryptoKey> {
  const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, ours, 256);
  return aesKey(await hkdf(new Uint8Array(shared), new Uint8Array(), INFO));
}

async function point(bytes: Bytes): Promise<CryptoKey | undefined> {
  if (bytes.length !== POINT_BYTES || bytes[0] !== UNCOMPRESSED) {
    return undefined;
  }
  try {
    return await crypto.subtle.importKey("raw", bytes, CURVE, true, []);
  } catch {
    return undefined;
  }
}

function asJson(value: unknown): string {
  try {
    const text = JSON.stringify(value) as string | undefined;
    if (text !== undefined) {
      return text;
    }
  } catch {
    // The cause would quote content.
  }
  throw new SealError("not_json");
}

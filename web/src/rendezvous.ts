/**
 * Two sides that share a secret meet at a session neither has told the other about: both derive the same rendezvous,
 * which the relay is given, and the same end-to-end secret k, which it is not. Neither leads to the other, nor back.
 */

import { toBase64Url, utf8 } from "./bytes.js";
import { hkdf } from "./cipher.js";

/** Below this a secret can be guessed. */
const SECRET_BYTES_MIN = 16;
const RENDEZVOUS_INFO = utf8("sov1|rendezvous");
const SECRET_INFO = utf8("sov1|k");
const NO_SALT = new Uint8Array();

/** What both sides derive. */
export interface Rendezvous {
  /** For the `rendezvous` field of the call that makes the session. */
  readonly rendezvous: string;
  /** k, for the session's `secret`. Never given to the relay. */
  readonly secret: Uint8Array;
}

/** Derives both values from the shared secret, 16 random bytes or more. */
export async function deriveRendezvous(sharedSecret: Uint8Array): Promise<Rendezvous> {
  if (sharedSecret.length < SECRET_BYTES_MIN) {
    throw new RangeError("the shared secret must have 16 bytes or more");
  }
  const secret = Uint8Array.from(sharedSecret);
  return {
    rendezvous: toBase64Url(await hkdf(secret, NO_SALT, RENDEZVOUS_INFO)),
    secret: await hkdf(secret, NO_SALT, SECRET_INFO),
  };
}

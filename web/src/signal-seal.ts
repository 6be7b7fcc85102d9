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

import { concat, fromBase64Url, fromUtf8, padTo, randomBytes, toBase64Url, utf8, type Bytes } from "./bytes.js";
import { aesKey, counterNonce, decrypt, encrypt, hkdf } from "./cipher.js";

/** Length of k. */
export const SECRET_BYTES = 32;
const LOAD_BYTES = 16;
/** Lengths that a message is padded to: offers and candidates don't differ by length alone. */
const PADDED_BYTES = [256, 512, 1024, 2048, 4096, 8192, 16384];
/** A session lives 10 minutes with at most 10 loads a minute of each slot; more than this is no honest peer. */
const LOADS_MAX = 256;
/** Before the ciphertext: `e1.`, r and the longest counter. */
const HEAD_CHARS_MAX = "e1.".length + 22 + ".9007199254740991.".length;
/** What AES-GCM adds to a text. */
const TAG_BYTES = 16;
const FRAME = /^e1\.([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,15})\.([A-Za-z0-9_-]+)$/;

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
export type Opened =
  | {
      readonly ok: true;
      readonly text: string;
      /** Which of the peer's page loads it comes from, counted from 1. */
      readonly load: number;
      /** How many frames of this load are missing before this one. */
      readonly missing: number;
    }
  | { readonly ok: false; readonly rejection: Rejection };

/** A new end-to-end secret k. */
export function newSecret(): Uint8Array {
  return randomBytes(SECRET_BYTES);
}

/** How long a text is once it is sealed, at most; `undefined` when it is longer than the longest padding. */
export function sealedLength(text: string): number | undefined {
  const length = utf8(text).length;
  const padded = PADDED_BYTES.find((padded) => length <= padded);
  return padded === undefined ? undefined : HEAD_CHARS_MAX + Math.ceil(((padded + TAG_BYTES) * 4) / 3);
}

/** Seals what one page load sends. */
export class SignalSealer {
  readonly #context: Context;
  readonly #load: Bytes;
  readonly #key: Promise<CryptoKey>;
  #count = 0;

  /** `load` is for the vectors; otherwise it is drawn here and never stored. */
  constructor(secret: SealingSecret, slot: Slot, load: Uint8Array = randomBytes(LOAD_BYTES)) {
    this.#context = new Context(secret, slot);
    this.#load = Uint8Array.from(load);
    this.#key = this.#context.key(this.#load);
  }

  /** Seals the next message; `undefined` when it is longer than 16 KiB. Calls count in the order they are made. */
  async seal(text: string): Promise<string | undefined> {
    const padded = padTo(PADDED_BYTES, text);
    return padded === undefined ? undefined : this.sealExactly(padded);
  }

  /** @internal Without padding; for the vectors. */
  async sealExactly(bytes: Bytes): Promise<string> {
    // Taken before the first await: no two messages ever share a nonce.
    this.#count += 1;
    const count = this.#count;
    const load = toBase64Url(this.#load);
    const associated = this.#context.associated(load, count);
    const sealed = await encrypt(await this.#key, counterNonce(count), bytes, associated);
    return `e1.${load}.${count}.${toBase64Url(sealed)}`;
  }
}

/** Opens what the other slot sends. Calls must not overlap: the order of frames is what it guards. */
export class SignalOpener {
  readonly #context: Context;
  readonly #retired = new Set<string>();
  #current: { readonly load: string; readonly key: CryptoKey; count: number } | undefined;

  constructor(secret: SealingSecret, ownSlot: Slot) {
    this.#context = new Context(secret, ownSlot === "a" ? "b" : "a");
  }

  /** Opens the next frame. */
  async open(frame: string): Promise<Opened> {
    const parsed = parse(frame);
    if (parsed === undefined) {
      return reject("not_sealed");
    }
    const current = this.#current;
    if (this.#retired.has(parsed.load)) {
      return reject("retired_load");
    }
    if (current?.load === parsed.load && parsed.count <= current.count) {
      return reject("replayed");
    }
    const key = current?.load === parsed.load ? current.key : await this.#context.key(parsed.loadBytes);
    const associated = this.#context.associated(parsed.load, parsed.count);
    const bytes = await decrypt(key, counterNonce(parsed.count), parsed.ciphertext, associated);
    const text = bytes === undefined ? undefined : fromUtf8(bytes);
    return text === undefined ? reject("not_authentic") : this.#accept(parsed, key, text);
  }

  #accept(parsed: ParsedFrame, key: CryptoKey, text: string): Opened {
    const current = this.#current;
    if (current?.load === parsed.load) {
      const missing = parsed.count - current.count - 1;
      current.count = parsed.count;
      return { ok: true, text, load: this.#retired.size + 1, missing };
    }
    if (this.#retired.size >= LOADS_MAX) {
      return reject("too_many_loads");
    }
    // Of the first load we see, a page load of ours that is gone may have had the beginning.
    const missing = current === undefined ? 0 : parsed.count - 1;
    if (current !== undefined) {
      this.#retired.add(current.load);
    }
    this.#current = { load: parsed.load, key, count: parsed.count };
    return { ok: true, text, load: this.#retired.size + 1, missing };
  }
}

/** What key and associated data depend on beside r and m. */
class Context {
  readonly #secret: Bytes;
  readonly #sessionId: string;
  readonly #slot: Slot;

  constructor({ secret, sessionId }: SealingSecret, senderSlot: Slot) {
    if (secret.length !== SECRET_BYTES) {
      throw new RangeError("the end-to-end secret must have 32 bytes");
    }
    this.#secret = Uint8Array.from(secret);
    this.#sessionId = sessionId;
    this.#slot = senderSlot;
  }

  async key(load: Bytes): Promise<CryptoKey> {
    const salt = concat(utf8(this.#sessionId), load);
    return aesKey(await hkdf(this.#secret, salt, utf8(`sov1|${this.#slot}`)));
  }

  associated(load: string, count: number): Bytes {
    return utf8(`${this.#sessionId}|${this.#slot}|${load}|${count}`);
  }
}

interface ParsedFrame {
  readonly load: string;
  readonly loadBytes: Bytes;
  readonly count: number;
  readonly ciphertext: Bytes;
}

function parse(frame: string): ParsedFrame | undefined {
  const [, load, digits, body] = FRAME.exec(frame) ?? [];
  if (load === undefined || digits === undefined || body === undefined) {
    return undefined;
  }
  const [loadBytes, ciphertext, count] = [fromBase64Url(load), fromBase64Url(body), Number(digits)];
  if (loadBytes === undefined || ciphertext === undefined || !Number.isSafeInteger(count)) {
    return undefined;
  }
  return { load, loadBytes, count, ciphertext };
}

function reject(rejection: Rejection): Opened {
  return { ok: false, rejection };
}

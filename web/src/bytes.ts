/**
 * Bytes and their text forms. Decoding is strict: one text for one value, so that nothing can be altered in its
 * text form and still mean the same. RFC 4648.
 */

/** Bytes that WebCrypto takes. */
export type Bytes = Uint8Array<ArrayBuffer>;

const STANDARD = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const URL_SAFE = /^[A-Za-z0-9_-]*$/;

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** UTF-8; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Bytes {
  return utf8Encoder.encode(text);
}

/** Text of UTF-8, or `undefined` when it isn't. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8Decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) {
    binary += String.fromCharCode(byte);
  }
  return btoa(binary);
}

/** Bytes of standard base64 with padding, or `undefined` when it isn't. */
export function fromBase64(text: string): Bytes | undefined {
  if (!STANDARD.test(text)) {
    return undefined;
  }
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return toBase64(bytes) === text ? bytes : undefined;
}

/** base64url without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replace(/[+]/g, "-").replace(/[/]/g, "_").replace(/=+$/, "");
}

/** Bytes of base64url without padding, or `undefined` when it isn't. */
export function fromBase64Url(text: string): Bytes | undefined {
  if (!URL_SAFE.test(text)) {
    return undefined;
  }
  const standard = text.replace(/-/g, "+").replace(/_/g, "/");
  return fromBase64(standard + "=".repeat((4 - (standard.length % 4)) % 4));
}

/** Lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** One after the other. */
export function concat(...parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Random bytes of the platform's secure source. */
export function randomBytes(length: number): Bytes {
  return crypto.getRandomValues(new Uint8Array(length));
}

/**
 * Pads text with trailing spaces, which JSON parsers skip, to the first of `lengths` (bytes, rising) that holds it;
 * `undefined` when none does. The length then tells little of the content.
 */
export function padTo(lengths: readonly number[], text: string): Bytes | undefined {
  const bytes = utf8(text);
  const target = lengths.find((length) => bytes.length <= length);
  return target === undefined ? undefined : concat(bytes, utf8(" ".repeat(target - bytes.length)));
}

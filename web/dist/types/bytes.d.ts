/**
 * Bytes and their text forms. Decoding is strict: one text for one value, so that nothing can be altered in its
 * text form and still mean the same. RFC 4648.
 */
/** Bytes that WebCrypto takes. */
export type Bytes = Uint8Array<ArrayBuffer>;
/** UTF-8; a lone surrogate becomes U+FFFD. */
export declare function utf8(text: string): Bytes;
/** Text of UTF-8, or `undefined` when it isn't. */
export declare function fromUtf8(bytes: Uint8Array): string | undefined;
/** Standard base64 with padding. */
export declare function toBase64(bytes: Uint8Array): string;
/** Bytes of standard base64 with padding, or `undefined` when it isn't. */
export declare function fromBase64(text: string): Bytes | undefined;
/** base64url without padding. */
export declare function toBase64Url(bytes: Uint8Array): string;
/** Bytes of base64url without padding, or `undefined` when it isn't. */
export declare function fromBase64Url(text: string): Bytes | undefined;
/** Lower-case hexadecimal. */
export declare function toHex(bytes: Uint8Array): string;
/** One after the other. */
export declare function concat(...parts: readonly Uint8Array[]): Bytes;
/** Random bytes of the platform's secure source. */
export declare function randomBytes(length: number): Bytes;
/**
 * Pads text with trailing spaces, which JSON parsers skip, to the first of `lengths` (bytes, rising) that holds it;
 * `undefined` when none does. The length then tells little of the content.
 */
export declare function padTo(lengths: readonly number[], text: string): Bytes | undefined;

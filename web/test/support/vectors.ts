/** The vectors that every implementation shares: protocol/vectors/. */
import { readFileSync } from "node:fs";

export function vectors(name: string): unknown {
  // From build/test/support/.
  const path = new URL(`../../../../protocol/vectors/${name}`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8"));
}

export function fromHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Signaling messages in words a person can take in. */

import type { SignalMessage } from "@sovereignfs/relay-client";

/** A message in a few words. */
export function describe({ kind, value }: SignalMessage): string {
  switch (kind) {
    case "offer":
    case "answer":
      return `key fingerprint ${fingerprint(field(value, "sdp"))}`;
    case "candidate":
      return value === null ? "no more addresses" : address(field(value, "candidate"));
    case "pairing":
      return "a name for this connection";
    default:
      return "";
  }
}

/** All of a message, to be read. */
export function inFull({ kind, negotiation, value }: SignalMessage): string {
  const sdp = field(value, "sdp");
  const head = `kind: ${kind}\nnegotiation: ${negotiation}\n\n`;
  return head + (sdp === "" ? JSON.stringify(value, null, 2) : sdp.trimEnd());
}

/** Enough of an opaque text to see that it is one, and how long it is. */
export function shorten(sealed: string): { readonly head: string; readonly size: string } {
  return { head: `${sealed.slice(0, HEAD_CHARS)}…`, size: `${sealed.length.toLocaleString("en")} bytes` };
}

const HEAD_CHARS = 44;

function field(value: unknown, name: string): string {
  const found = (value as Record<string, unknown> | null)?.[name];
  return typeof found === "string" ? found : "";
}

/** The beginning of the DTLS fingerprint: what a relay would have to swap to listen in. */
function fingerprint(sdp: string): string {
  const found = /^a=fingerprint:\S+ ((?:[0-9A-F]{2}:){5}[0-9A-F]{2})/m.exec(sdp)?.[1];
  return found === undefined ? "missing" : `${found}…`;
}

/** Foundation, component, transport, priority, address, port (RFC 8839, 5.1). */
function address(candidate: string): string {
  const [, , transport = "", , host = "", port = ""] = candidate.split(" ");
  return host === "" ? "no more addresses" : `${transport.toLowerCase()} ${host}:${port}`;
}

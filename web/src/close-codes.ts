/** What a WebSocket close code means for the session: is it over, or when may we dial again? RFC 6455, 7.4. */

/** Codes that we close with. To the relay they all mean the same: away, until the resume. */
export const CLOSE = {
  normal: 1000,
  protocolError: 4400,
  outOfStep: 4500,
  noWelcome: 4508,
  heartbeatsMissed: 4512,
} as const;

/** Why a session is over for this side. */
export type CloseReason =
  /** `close()` was called. */
  | "left"
  /** The relay is done with us. */
  | "done"
  | "protocol_error"
  | "bad_ticket"
  | "revoked"
  | "no_session"
  /** A newer connection with the same ticket took the slot. */
  | "replaced"
  /** Expired, deleted, or both sides left. */
  | "over"
  | "total_exceeded"
  | "version"
  | "abuse"
  /** The relay lost what it had acknowledged, or claims what was never said. */
  | "out_of_step"
  /** No connection for longer than a session lives. */
  | "unreachable"
  /** A final code of a later version. */
  | "other";

/** `backoff`: soon. `moved`: within the `goaway`. `busy`: 5 s or more. */
export type Retry = "backoff" | "moved" | "busy";

export type Meaning = { readonly final: CloseReason } | { readonly retry: Retry };

const FINAL = new Map<number, CloseReason>([
  [1000, "done"],
  [1002, "protocol_error"],
  [1003, "protocol_error"],
  [1007, "protocol_error"],
  [1009, "protocol_error"],
  [4400, "protocol_error"],
  [4401, "bad_ticket"],
  [4403, "revoked"],
  [4404, "no_session"],
  [4409, "replaced"],
  [4410, "over"],
  [4413, "total_exceeded"],
  [4426, "version"],
  [4429, "abuse"],
]);

/** The meaning of a code. One that the contract doesn't name is final in 44xx and means resume elsewhere. */
export function meaningOf(code: number): Meaning {
  const final = FINAL.get(code);
  if (final !== undefined) {
    return { final };
  }
  if (code === 1012) {
    return { retry: "moved" };
  }
  if (code === 1013) {
    return { retry: "busy" };
  }
  return code >= 4400 && code < 4500 ? { final: "other" } : { retry: "backoff" };
}

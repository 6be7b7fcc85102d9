/** What a WebSocket close code means for the session: is it over, or when may we dial again? RFC 6455, 7.4. */
/** Codes that we close with. To the relay they all mean the same: away, until the resume. */
export declare const CLOSE: {
    readonly normal: 1000;
    readonly protocolError: 4400;
    readonly outOfStep: 4500;
    readonly noWelcome: 4508;
    readonly heartbeatsMissed: 4512;
};
/** Why a session is over for this side. */
export type CloseReason = 
/** `close()` was called. */
"left"
/** The relay is done with us. */
 | "done" | "protocol_error" | "bad_ticket" | "revoked" | "no_session"
/** A newer connection with the same ticket took the slot. */
 | "replaced"
/** Expired, deleted, or both sides left. */
 | "over" | "total_exceeded" | "version" | "abuse"
/** The relay lost what it had acknowledged, or claims what was never said. */
 | "out_of_step"
/** No connection for longer than a session lives. */
 | "unreachable"
/** A final code of a later version. */
 | "other";
/** `backoff`: soon. `moved`: within the `goaway`. `busy`: 5 s or more. */
export type Retry = "backoff" | "moved" | "busy";
export type Meaning = {
    readonly final: CloseReason;
} | {
    readonly retry: Retry;
};
/** The meaning of a code. One that the contract doesn't name is final in 44xx and means resume elsewhere. */
export declare function meaningOf(code: number): Meaning;

/**
 * What an instance asks the relay, from Node: enroll, push, batch, sessions. A page never does: it has no key, and the
 * relay answers no other origin.
 *
 * A call never throws for what the relay or the network does; it gives a {@link Result}. Nothing is retried here: a
 * push that may have been accepted is the caller's to repeat, with its idempotency key.
 */
import type { Capabilities, Enrollment, Meeting, NewSession, PushAnswer, PushMessage, Result, Rotation, SessionSettings, SessionState } from "./instance-types.js";
import { type HttpOptions } from "./http.js";
export declare class Instance {
    #private;
    /** `instanceKey` as `enroll` gave it; without one, only `enroll` and `capabilities` can be called. */
    constructor(url: string, options?: HttpOptions);
    /** Becomes an instance of this relay. The key is a secret to keep; make an `Instance` with it for all the rest. */
    enroll(about?: {
        name?: string;
        contact?: string;
        invite?: string;
    }): Promise<Result<Enrollment>>;
    /** One notification to one device. */
    push(message: PushMessage): Promise<Result<PushAnswer>>;
    /** 1 to 500 notifications, answered in order. One that is wrong spoils no other. */
    pushBatch(messages: readonly PushMessage[]): Promise<Result<readonly Result<PushAnswer>[]>>;
    /** A session with both tickets: keep one, hand the other and a secret of your own making to the other side. */
    createSession(settings?: SessionSettings): Promise<Result<NewSession>>;
    /** The session of a rendezvous that both sides derived; it is made by whoever comes first. */
    meet(rendezvous: string, settings?: SessionSettings): Promise<Result<Meeting>>;
    /** Who is there and how much waits; never content. */
    session(sessionId: string): Promise<Result<SessionState>>;
    /** Ends the session: nothing of it is delivered after the answer. */
    deleteSession(sessionId: string): Promise<Result<undefined>>;
    /** What this relay can do. */
    capabilities(): Promise<Result<Capabilities>>;
    /** A new key; the old one works on for `graceSeconds` (24 h by default). */
    rotateKey(options?: {
        graceSeconds?: number;
    }): Promise<Result<Rotation>>;
    /** Leaves the relay: the key is revoked and the record erased. */
    withdraw(): Promise<Result<undefined>>;
}

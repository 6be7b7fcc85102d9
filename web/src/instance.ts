/**
 * What an instance asks the relay, from Node: enroll, push, batch, sessions. A page never does: it has no key, and the
 * relay answers no other origin.
 *
 * A call never throws for what the relay or the network does; it gives a {@link Result}. Nothing is retried here: a
 * push that may have been accepted is the caller's to repeat, with its idempotency key.
 */

import {
  readBatch,
  readCapabilities,
  readEnrollment,
  readMeeting,
  readPush,
  readRotation,
  readSessionState,
  readTickets,
} from "./instance-answers.js";
import type {
  Capabilities,
  Enrollment,
  Meeting,
  NewSession,
  PushAnswer,
  PushMessage,
  Result,
  Rotation,
  SessionSettings,
  SessionState,
} from "./instance-types.js";
import { Http, type HttpOptions } from "./http.js";

/** A relay takes 136 s at most for a batch of 500, and a proxy in front may wait a little longer. */
const BATCH_TIMEOUT_MS = 5 * 60_000;

export class Instance {
  readonly #http: Http;

  /** `instanceKey` as `enroll` gave it; without one, only `enroll` and `capabilities` can be called. */
  constructor(url: string, options: HttpOptions = {}) {
    this.#http = new Http(url, options);
  }

  /** Becomes an instance of this relay. The key is a secret to keep; make an `Instance` with it for all the rest. */
  async enroll(about: { name?: string; contact?: string; invite?: string } = {}): Promise<Result<Enrollment>> {
    const { invite, ...body } = about;
    return this.#http.call("POST", "/v1/enroll", { body, bearer: invite ?? null }, readEnrollment);
  }

  /** One notification to one device. */
  async push(message: PushMessage): Promise<Result<PushAnswer>> {
    return this.#http.call("POST", "/v1/push", { body: message }, readPush);
  }

  /** 1 to 500 notifications, answered in order. One that is wrong spoils no other. */
  async pushBatch(messages: readonly PushMessage[]): Promise<Result<readonly Result<PushAnswer>[]>> {
    const request = { body: { messages }, timeoutMs: BATCH_TIMEOUT_MS };
    return this.#http.call("POST", "/v1/push/batch", request, (answer) => readBatch(answer, messages.length));
  }

  /** A session with both tickets: keep one, hand the other and a secret of your own making to the other side. */
  async createSession(settings: SessionSettings = {}): Promise<Result<NewSession>> {
    return this.#http.call("POST", "/v1/signal/sessions", { body: settings }, readTickets);
  }

  /** The session of a rendezvous that both sides derived; it is made by whoever comes first. */
  async meet(rendezvous: string, settings: SessionSettings = {}): Promise<Result<Meeting>> {
    return this.#http.call("POST", "/v1/signal/sessions", { body: { ...settings, rendezvous } }, readMeeting);
  }

  /** Who is there and how much waits; never content. */
  async session(sessionId: string): Promise<Result<SessionState>> {
    return this.#http.call("GET", `/v1/signal/sessions/${encodeURIComponent(sessionId)}`, {}, readSessionState);
  }

  /** Ends the session: nothing of it is delivered after the answer. */
  async deleteSession(sessionId: string): Promise<Result<undefined>> {
    return this.#http.call("DELETE", `/v1/signal/sessions/${encodeURIComponent(sessionId)}`, {}, readNothing);
  }

  /** What this relay can do. */
  async capabilities(): Promise<Result<Capabilities>> {
    return this.#http.call("GET", "/v1/capabilities", { bearer: null }, readCapabilities);
  }

  /** A new key; the old one works on for `graceSeconds` (24 h by default). */
  async rotateKey(options: { graceSeconds?: number } = {}): Promise<Result<Rotation>> {
    return this.#http.call("POST", "/v1/keys/rotate", { body: options }, readRotation);
  }

  /** Leaves the relay: the key is revoked and the record erased. */
  async withdraw(): Promise<Result<undefined>> {
    return this.#http.call("DELETE", "/v1/enrollment", {}, readNothing);
  }
}

function readNothing(): { readonly value: undefined } {
  return { value: undefined };
}

/** Reads the relay's answers: what is missing or of another type makes the whole answer an unexpected one. */

import { readLimits, type PresenceState } from "./frames.js";
import { isErrorCode, isObject, type Fields, type Reader } from "./http.js";
import type {
  Capabilities,
  Enrollment,
  Meeting,
  NewSession,
  PushAnswer,
  Result,
  Rotation,
  SessionState,
  SlotState,
} from "./instance-types.js";

const CREATED = 201;

export const readEnrollment: Reader<Enrollment> = ({ instanceId, instanceKey }) =>
  isText(instanceId) && isText(instanceKey) ? { value: { instanceId, instanceKey } } : undefined;

export const readRotation: Reader<Rotation> = ({ instanceId, instanceKey, previousValidUntil }) =>
  isText(instanceId) && isText(instanceKey) && isText(previousValidUntil)
    ? { value: { instanceId, instanceKey, previousValidUntil } }
    : undefined;

export const readPush: Reader<PushAnswer> = (fields) => {
  const { result, reason, invalidSince, messageId, retryable } = fields;
  if (result === "sent") {
    return { value: isText(messageId) ? { result, messageId } : { result } };
  }
  if (!isText(reason)) {
    return undefined;
  }
  if (result === "invalid_token") {
    return isText(invalidSince) ? { value: { result, reason, invalidSince } } : undefined;
  }
  return result === "failed"
    ? { value: { result, reason, retryable: retryable === true, ...readRetryAfter(fields) } }
    : undefined;
};

/** Answers in the order of the messages, as many as there were. */
export function readBatch(fields: Fields, count: number): { value: Result<PushAnswer>[] } | undefined {
  const { results } = fields;
  if (!Array.isArray(results) || results.length !== count) {
    return undefined;
  }
  const read = results.map(readBatchEntry).filter((result) => result !== undefined);
  return read.length === count ? { value: read } : undefined;
}

export const readTickets: Reader<NewSession> = (fields) => {
  const [basics, tickets] = [readBasics(fields), fields["tickets"]];
  if (basics === undefined || !isObject(tickets)) {
    return undefined;
  }
  const { a, b } = tickets;
  return isText(a) && isText(b) ? { value: { ...basics, tickets: { a, b } } } : undefined;
};

export const readMeeting: Reader<Meeting> = (fields, status) => {
  const [basics, tickets] = [readBasics(fields), fields["tickets"]];
  if (basics === undefined || !isObject(tickets)) {
    return undefined;
  }
  const { a, b } = tickets;
  const own = isText(a) ? ({ slot: "a", ticket: a } as const) : isText(b) ? ({ slot: "b", ticket: b } as const) : undefined;
  return own === undefined ? undefined : { value: { ...basics, ...own, created: status === CREATED } };
};

export const readSessionState: Reader<SessionState> = ({ sessionId, expiresAt, slots }) => {
  if (!isText(sessionId) || !isText(expiresAt) || !isObject(slots)) {
    return undefined;
  }
  const [a, b] = [readSlot(slots["a"]), readSlot(slots["b"])];
  return a !== undefined && b !== undefined ? { value: { sessionId, expiresAt, slots: { a, b } } } : undefined;
};

export const readCapabilities: Reader<Capabilities> = (fields) => {
  const { platforms, signaling, limits, version } = fields;
  const whole = isObject(platforms) && isObject(signaling) && isObject(limits) && isText(version);
  if (!whole || !Array.isArray(signaling["subprotocols"])) {
    return undefined;
  }
  return { value: fields as unknown as Capabilities };
};

function readBatchEntry(entry: unknown): Result<PushAnswer> | undefined {
  if (!isObject(entry)) {
    return undefined;
  }
  const { error, message } = entry;
  if (isErrorCode(error) && isText(message)) {
    return { ok: false, error, message, ...readRetryAfter(entry) };
  }
  const answer = readPush(entry, 200);
  return answer === undefined ? undefined : { ok: true, value: answer.value };
}

function readBasics(fields: Fields): Omit<NewSession, "tickets"> | undefined {
  const { sessionId, expiresAt, url } = fields;
  const limits = readLimits(fields["limits"]);
  return isText(sessionId) && isText(expiresAt) && isText(url) && limits !== undefined
    ? { sessionId, expiresAt, url, limits }
    : undefined;
}

function readSlot(value: unknown): SlotState | undefined {
  if (!isObject(value)) {
    return undefined;
  }
  const { state, gen, queued } = value;
  return isText(state) && typeof gen === "number" && typeof queued === "number"
    ? { state: state as PresenceState, gen, queued }
    : undefined;
}

function readRetryAfter({ retryAfterSeconds }: Fields): { retryAfterSeconds?: number } {
  return typeof retryAfterSeconds === "number" ? { retryAfterSeconds } : {};
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

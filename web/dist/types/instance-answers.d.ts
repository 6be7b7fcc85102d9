/** Reads the relay's answers: what is missing or of another type makes the whole answer an unexpected one. */
import { type Fields, type Reader } from "./http.js";
import type { Capabilities, Enrollment, Meeting, NewSession, PushAnswer, Result, Rotation, SessionState } from "./instance-types.js";
export declare const readEnrollment: Reader<Enrollment>;
export declare const readRotation: Reader<Rotation>;
export declare const readPush: Reader<PushAnswer>;
/** Answers in the order of the messages, as many as there were. */
export declare function readBatch(fields: Fields, count: number): {
    value: Result<PushAnswer>[];
} | undefined;
export declare const readTickets: Reader<NewSession>;
export declare const readMeeting: Reader<Meeting>;
export declare const readSessionState: Reader<SessionState>;
export declare const readCapabilities: Reader<Capabilities>;

/** What an instance and the relay tell each other over HTTP. */
import type { PresenceState, SessionLimits } from "./frames.js";
import type { Slot } from "./signal-seal.js";
/** The relay's stable error codes. */
export declare const ERROR_CODES: readonly ["invalid_request", "unauthorized", "revoked", "suspended", "enrollment_closed", "origin_not_allowed", "not_found", "method_not_allowed", "request_timeout", "session_full", "settings_conflict", "idempotency_conflict", "payload_too_large", "unsupported_media_type", "rate_limited", "internal_error", "send_failed", "not_configured", "platform_not_configured", "overloaded", "draining"];
export type ErrorCode = (typeof ERROR_CODES)[number];
/** The value, or why there is none. */
export type Result<T> = {
    readonly ok: true;
    readonly value: T;
} | Failure;
export interface Failure {
    readonly ok: false;
    /**
     * What the relay said; or `unreachable`: no answer came, `timed_out`: not in time (either way the request may have
     * been carried out), `unexpected_answer`: it is not one of this relay's, perhaps a proxy's.
     */
    readonly error: ErrorCode | "unreachable" | "timed_out" | "unexpected_answer";
    /** For people. */
    readonly message: string;
    /** HTTP status, if there was an answer. */
    readonly status?: number;
    /** Not before this many seconds. */
    readonly retryAfterSeconds?: number;
    /** Names the request in the relay's log. */
    readonly requestId?: string;
}
export interface Enrollment {
    readonly instanceId: string;
    readonly instanceKey: string;
}
export interface Rotation extends Enrollment {
    readonly previousValidUntil: string;
}
export type PushPlatform = "ios" | "android" | "macos" | "windows";
export interface PushMessage {
    readonly deviceToken: string;
    readonly platform: PushPlatform;
    /** As `seal` made it. */
    readonly encryptedPayload: string;
    readonly priority?: "high" | "normal";
    readonly ttlSeconds?: number;
    readonly collapseId?: string;
    readonly environment?: "production" | "sandbox";
    /** Makes a repeat safe for 10 minutes. */
    readonly idempotencyKey?: string;
}
/** Reasons why a device is gone, and why a push failed. A later relay may know more. */
export type GoneReason = "unregistered" | "expired_token" | "bad_token" | "wrong_app" | "malformed_token";
export type FailedReason = "recently_invalid" | "unconfirmed_token" | "device_throttled" | "provider_throttled" | "provider_unavailable" | "provider_timeout" | "unknown_outcome" | "payload_rejected" | "dropped" | "relay_misconfigured";
export type PushAnswer = {
    readonly result: "sent";
    readonly messageId?: string;
} | {
    readonly result: "invalid_token";
    readonly reason: GoneReason | (string & {});
    /** Delete the device only if it registered before this. */
    readonly invalidSince: string;
} | {
    readonly result: "failed";
    readonly reason: FailedReason | (string & {});
    /** The same push may succeed later. */
    readonly retryable: boolean;
    readonly retryAfterSeconds?: number;
};
export interface SessionSettings {
    /** 30 to 600; 120 by default. */
    readonly ttlSeconds?: number;
    /** TURN servers in the welcome. */
    readonly turn?: boolean;
    /** `required` by default: the relay takes sealed messages only. */
    readonly e2e?: "required" | "optional";
}
interface SessionBasics {
    readonly sessionId: string;
    readonly expiresAt: string;
    /** Where both sides connect. */
    readonly url: string;
    readonly limits: SessionLimits;
}
export interface NewSession extends SessionBasics {
    readonly tickets: Readonly<Record<Slot, string>>;
}
export interface Meeting extends SessionBasics {
    /** Our side. */
    readonly slot: Slot;
    readonly ticket: string;
    /** False when the other side, or an earlier call, had made it. */
    readonly created: boolean;
}
export interface SlotState {
    readonly state: PresenceState;
    readonly gen: number;
    readonly queued: number;
}
export interface SessionState {
    readonly sessionId: string;
    readonly expiresAt: string;
    readonly slots: Readonly<Record<Slot, SlotState>>;
}
export interface Capabilities {
    readonly platforms: Readonly<Record<PushPlatform, boolean>>;
    readonly signaling: {
        readonly subprotocols: readonly string[];
        readonly durability?: "memory" | "redis";
    };
    readonly limits: Readonly<Record<string, unknown>>;
    readonly version: string;
}
export {};

/** Everything that a page or an instance uses. */
export { seal, open, generateDeviceKey, exportDevicePublicKey, importDeviceKey, SealError, OpenError, PADDED_BYTES } from "./seal.js";
export type { SealFault, OpenFault } from "./seal.js";
export { SignalSealer, SignalOpener, newSecret } from "./signal-seal.js";
export type { Opened, Rejection, SealingSecret, Slot } from "./signal-seal.js";
export { deriveRendezvous } from "./rendezvous.js";
export type { Rendezvous } from "./rendezvous.js";
export { toBase64Url, fromBase64Url } from "./bytes.js";
export { Session } from "./session.js";
export { SendError } from "./session-types.js";
export type { MessageEvent, RestartEvent, SendFault, SessionEvents, SessionOptions } from "./session-types.js";
export { connect } from "./connect.js";
export type { ConnectProblem, Connection, ConnectionEvents, MakePeerConnection } from "./connect.js";
export type { LegProblem } from "./leg.js";
export { moodOf } from "./mood.js";
export type { Received, SignalMessage } from "./envelope.js";
export type { Platform, WebSocketConstructor, WebSocketLike } from "./platform.js";
export type {
  ClosedEvent,
  ConnectionState,
  GoawayEvent,
  IceEvent,
  PeerEvent,
  RefusedEvent,
  StateEvent,
  ViolationEvent,
  ViolationReason,
  WelcomeEvent,
} from "./core-types.js";
export type { CloseReason } from "./close-codes.js";
export type { IceServer, Mood, PresenceState, RefusalCode, Role, SessionLimits } from "./frames.js";
export { Instance } from "./instance.js";
export { ERROR_CODES } from "./instance-types.js";
export type { HttpOptions } from "./http.js";
export type * from "./instance-types.js";

/** How a connection came about, for the mood that the relay counts when a session is left. */
import type { Mood } from "./frames.js";
/** `relayed` when a TURN server of either side carries it, `failed` when nothing does. */
export declare function moodOf(peerConnection: RTCPeerConnection): Promise<Mood>;

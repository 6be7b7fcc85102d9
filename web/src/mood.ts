/** How a connection came about, for the mood that the relay counts when a session is left. */

import type { Mood } from "./frames.js";

interface Pair {
  readonly id: string;
  readonly type: string;
  readonly selected?: boolean;
  readonly nominated?: boolean;
  readonly state?: string;
  readonly localCandidateId?: string;
  readonly remoteCandidateId?: string;
  readonly selectedCandidatePairId?: string;
  readonly candidateType?: string;
}

/** `relayed` when a TURN server of either side carries it, `failed` when nothing does. */
export async function moodOf(peerConnection: RTCPeerConnection): Promise<Mood> {
  if (peerConnection.connectionState !== "connected") {
    return "failed";
  }
  const stats = new Map<string, Pair>();
  (await peerConnection.getStats()).forEach((entry: Pair) => stats.set(entry.id, entry));
  const entries = [...stats.values()];
  const chosen = entries.find(({ selectedCandidatePairId }) => selectedCandidatePairId !== undefined);
  const pair = stats.get(chosen?.selectedCandidatePairId ?? "") ?? entries.find(({ selected }) => selected === true);
  const ends = [pair?.localCandidateId, pair?.remoteCandidateId].map((id) => stats.get(id ?? "")?.candidateType);
  return ends.includes("relay") ? "relayed" : "direct";
}

/**
 * Negotiation over one `RTCPeerConnection`: the pattern of "perfect negotiation" (WebRTC 1.0, 10.7), with messages that
 * name the negotiation they belong to. {@link Connection} owns it and calls one method at a time.
 *
 *     negotiationneeded -> offer ----> take(offer) -> answer ----> take(answer)
 *     icecandidate -> candidate ----> take(candidate): applied once its description is, until then kept
 *
 * Invariant: an answer is applied to the offer it answers and to no other, and a candidate to the description it was
 * gathered for. On a collision of offers the polite side's is rolled back; the impolite side ignores the other's.
 */

import type { SignalMessage } from "./envelope.js";

/** No browser gathers so many for one description. */
const CANDIDATES_MAX = 256;

/** What went wrong with one message. The negotiation goes on without it. */
export type LegProblem =
  /** An answer to an offer that is no longer ours. */
  | "stale_answer"
  /** Not a description or candidate. */
  | "malformed"
  | "description_refused"
  | "candidate_refused"
  | "too_many_candidates"
  /** The browser could not make an offer. */
  | "offer_failed";

/** What a leg needs of its owner. */
export interface LegOwner {
  polite(): boolean;
  send(message: SignalMessage): void;
  report(problem: LegProblem): void;
  /** A name for a new negotiation. */
  nameNegotiation(): string;
  /** There is something to negotiate: the owner calls `offer` when it is the time. */
  wantsOffer(leg: Leg): void;
  /** ICE found no way, or no longer has one. */
  failed(): void;
}

export class Leg {
  readonly peerConnection: RTCPeerConnection;
  readonly #owner: LegOwner;
  readonly #listening = new AbortController();
  #kept: { readonly negotiation: string; readonly candidate: RTCIceCandidateInit | null }[] = [];
  /** Of our last description: our candidates belong to it. */
  #local = "";
  /** Of our offer that has no answer yet. */
  #offered: string | undefined;
  /** Of the peer's description that is applied. */
  #remote: string | undefined;
  #origin: string | undefined;
  /** The browser has something to negotiate that it has not settled since. */
  #wanted = false;

  constructor(peerConnection: RTCPeerConnection, owner: LegOwner) {
    this.peerConnection = peerConnection;
    this.#owner = owner;
    this.#listen();
  }

  /** A description of the peer is applied: this leg is bound to the peer's page load. */
  get bound(): boolean {
    return this.#remote !== undefined;
  }

  /** Something was negotiated or tried: it can't serve another peer connection. */
  get used(): boolean {
    return this.bound || this.#local !== "";
  }

  /** True when this offer comes from another `RTCPeerConnection` than the one we are bound to. */
  isFromAnother(value: unknown): boolean {
    const description = readDescription("offer", value);
    return this.#origin !== undefined && description !== undefined && originOf(description.sdp) !== this.#origin;
  }

  /** Stops, for good. What is under way leads to nothing any more. */
  retire(): void {
    this.#listening.abort();
  }

  /** Makes an offer, unless another negotiation is under way or has settled what there was to offer. */
  async offer(): Promise<void> {
    const connection = this.peerConnection;
    if (this.#retired || !this.#wanted || connection.signalingState !== "stable") {
      return; // When it is stable again the browser asks again, if there is still need.
    }
    this.#wanted = false;
    const negotiation = this.#owner.nameNegotiation();
    this.#local = negotiation;
    try {
      await connection.setLocalDescription();
    } catch {
      this.#owner.report("offer_failed");
      return;
    }
    this.#offered = negotiation;
    this.#sendDescription("offer", negotiation);
  }

  /** Takes a message of the peer. */
  async take({ kind, negotiation, value }: SignalMessage): Promise<void> {
    switch (kind) {
      case "offer":
        await this.#takeOffer(negotiation, readDescription("offer", value));
        break;
      case "answer":
        await this.#takeAnswer(negotiation, readDescription("answer", value));
        break;
      case "candidate":
        await this.#takeCandidate(negotiation, readCandidate(value));
        break;
    }
  }

  /** Offers again what the peer's earlier page load can't have answered. */
  offerAgain(): void {
    const description = this.peerConnection.localDescription;
    if (this.#offered !== undefined && description !== null) {
      this.#send("offer", this.#offered, { type: description.type, sdp: description.sdp });
    }
  }

  #listen(): void {
    const { signal } = this.#listening;
    const connection = this.peerConnection;
    const on = (type: string, listener: (event: Event) => void): void => {
      connection.addEventListener(type, listener, { signal });
    };
    on("negotiationneeded", () => {
      this.#wanted = true;
      this.#owner.wantsOffer(this);
    });
    on("icecandidate", (event) => {
      const { candidate } = event as RTCPeerConnectionIceEvent;
      // Null says that there are no more.
      this.#send("candidate", this.#local, candidate?.toJSON() ?? null);
    });
    on("connectionstatechange", () => {
      if (connection.connectionState === "failed") {
        this.#owner.failed();
      }
    });
  }

  async #takeOffer(negotiation: string, description: Description | undefined): Promise<void> {
    if (description === undefined) {
      this.#owner.report("malformed");
      return;
    }
    if (negotiation === this.#remote) {
      return; // Offered again, since the peer couldn't know that we have it.
    }
    const connection = this.peerConnection;
    if (connection.signalingState === "have-local-offer" && !this.#owner.polite()) {
      return; // Ours stands. The candidates of this one go with the next description.
    }
    if (await this.#apply(negotiation, description)) {
      this.#offered = undefined;
      this.#local = negotiation;
      // Our answer may settle it: both sides want the same channel, and one offer brings it. Else the browser asks again.
      this.#wanted = false;
      try {
        await connection.setLocalDescription();
      } catch {
        this.#owner.report("description_refused");
        return;
      }
      this.#sendDescription("answer", negotiation);
    }
  }

  async #takeAnswer(negotiation: string, description: Description | undefined): Promise<void> {
    if (description === undefined) {
      this.#owner.report("malformed");
    } else if (negotiation !== this.#offered || this.peerConnection.signalingState !== "have-local-offer") {
      this.#owner.report("stale_answer");
    } else if (await this.#apply(negotiation, description)) {
      this.#offered = undefined;
    }
  }

  async #takeCandidate(negotiation: string, candidate: RTCIceCandidateInit | null | undefined): Promise<void> {
    if (candidate === undefined) {
      this.#owner.report("malformed");
    } else if (negotiation === this.#remote) {
      await this.#add(candidate);
    } else if (this.#kept.length >= CANDIDATES_MAX) {
      this.#owner.report("too_many_candidates");
    } else {
      this.#kept.push({ negotiation, candidate });
    }
  }

  /** Sets the peer's description, which rolls back an offer of ours, and adds the candidates that came before it. */
  async #apply(negotiation: string, description: Description): Promise<boolean> {
    try {
      await this.peerConnection.setRemoteDescription(description);
    } catch {
      this.#owner.report("description_refused");
      return false;
    }
    this.#remote = negotiation;
    this.#origin = originOf(description.sdp);
    // The peer's messages come in order: candidates of other negotiations are of ones that are over.
    const due = this.#kept.filter((kept) => kept.negotiation === negotiation);
    this.#kept = [];
    for (const { candidate } of due) {
      await this.#add(candidate);
    }
    return true;
  }

  async #add(candidate: RTCIceCandidateInit | null): Promise<void> {
    try {
      await this.peerConnection.addIceCandidate(candidate ?? undefined);
    } catch {
      // Of an m-line that is gone or of an ICE generation that was replaced.
      this.#owner.report("candidate_refused");
    }
  }

  #sendDescription(kind: "offer" | "answer", negotiation: string): void {
    const description = this.peerConnection.localDescription;
    if (description !== null) {
      this.#send(kind, negotiation, { type: description.type, sdp: description.sdp });
    }
  }

  #send(kind: string, negotiation: string, value: unknown): void {
    if (!this.#retired) {
      this.#owner.send({ kind, negotiation, value });
    }
  }

  get #retired(): boolean {
    return this.#listening.signal.aborted;
  }
}

interface Description {
  readonly type: "offer" | "answer";
  readonly sdp: string;
}

function readDescription(type: "offer" | "answer", value: unknown): Description | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const fields = value as { type?: unknown; sdp?: unknown };
  return fields.type === type && typeof fields.sdp === "string" ? { type, sdp: fields.sdp } : undefined;
}

function readCandidate(value: unknown): RTCIceCandidateInit | null | undefined {
  if (typeof value !== "object" || value === null) {
    return value === null ? null : undefined;
  }
  return typeof (value as RTCIceCandidateInit).candidate === "string" ? value : undefined;
}

/** User name and session id of the o= line: they stay as long as the `RTCPeerConnection` lives (RFC 9429, 5.2.1). */
function originOf(sdp: string): string {
  return /^o=(\S+ \S+) /m.exec(sdp)?.[1] ?? "";
}

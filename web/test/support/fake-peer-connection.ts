/**
 * An `RTCPeerConnection` without a network: its signaling state machine is as strict as a browser's (WebRTC 1.0, 4.4),
 * so that what must be queued, rolled back or replaced fails when it isn't. Two are connected when each has applied a
 * description of the other and was given a candidate of it, and the end of candidates.
 */

let made = 0;

interface Description {
  readonly type: "offer" | "answer";
  readonly sdp: string;
}

export class FakePeerConnection extends EventTarget {
  readonly id = (made += 1);
  signalingState: RTCSignalingState = "stable";
  connectionState: RTCPeerConnectionState = "new";
  localDescription: Description | null = null;
  remoteDescription: Description | null = null;
  configuration: RTCConfiguration = {};
  /** Gatherings begun, with the servers they began with. */
  readonly gatherings: (RTCIceServer[] | undefined)[] = [];
  rollbacks = 0;
  #version = 0;
  #stable: [Description | null, Description | null] = [null, null];
  #channel = false;
  #hasChannel = false;
  #wanted = 0;
  #negotiated = 0;
  #ice = 0;
  #boundTo: string | undefined;
  #remoteCandidates = 0;
  #remoteEnded = false;

  /** As a data channel does: any offer with its m-line brings it, also one of the other side. */
  wantChannel(): void {
    this.#channel = true;
    this.#needed();
  }

  /** As a track does: only an offer of our own brings it. */
  want(): void {
    this.#wanted += 1;
    this.#needed();
  }

  restartIce(): void {
    this.#ice += 1;
    this.want();
  }

  /** The path breaks. */
  fail(): void {
    this.connectionState = "failed";
    this.dispatchEvent(new Event("connectionstatechange"));
  }

  getConfiguration(): RTCConfiguration {
    return this.configuration;
  }

  setConfiguration(configuration: RTCConfiguration): void {
    this.configuration = configuration;
  }

  close(): void {
    this.signalingState = "closed";
    this.connectionState = "closed";
  }

  async setLocalDescription(): Promise<void> {
    await this.#work();
    if (this.signalingState === "have-remote-offer") {
      this.localDescription = this.#describe("answer");
      this.#settle();
    } else {
      this.#require(this.signalingState === "stable" || this.signalingState === "have-local-offer");
      this.localDescription = this.#describe("offer");
      this.signalingState = "have-local-offer";
    }
    setTimeout(() => {
      this.#gather();
    }, 0);
  }

  async setRemoteDescription(description: Description): Promise<void> {
    await this.#work();
    const origin = /^o=(\S+ \S+) /m.exec(description.sdp)?.[1];
    this.#require(this.#boundTo === undefined || origin === this.#boundTo);
    if (description.type === "offer") {
      if (this.signalingState === "have-local-offer") {
        this.rollbacks += 1;
        [this.localDescription, this.remoteDescription] = this.#stable;
      }
      this.remoteDescription = description;
      this.signalingState = "have-remote-offer";
    } else {
      this.#require(this.signalingState === "have-local-offer");
      this.#require(description.sdp.includes(`a=answers:${this.id}.${this.#version}`));
      this.remoteDescription = description;
      this.#negotiated = this.#wanted;
      this.#settle();
    }
    this.#boundTo = origin;
    if (description.sdp.includes("a=end-of-candidates")) {
      [this.#remoteCandidates, this.#remoteEnded] = [1, true];
      this.#check();
    }
  }

  async addIceCandidate(candidate?: RTCIceCandidateInit): Promise<void> {
    await this.#work();
    this.#require(this.remoteDescription !== null);
    if (candidate === undefined) {
      this.#remoteEnded = true;
    } else {
      this.#require(this.remoteDescription?.sdp.includes(`a=ice-ufrag:${String(candidate.usernameFragment)}`) === true);
      this.#remoteCandidates += 1;
    }
    this.#check();
  }

  #settle(): void {
    this.signalingState = "stable";
    this.#stable = [this.localDescription, this.remoteDescription];
    this.#hasChannel = this.#stable.every((description) => description?.sdp.includes("m=application"));
    this.#check();
    this.#needed();
  }

  #check(): void {
    const isNew = this.connectionState !== "connected";
    if (isNew && this.signalingState === "stable" && this.#remoteCandidates > 0 && this.#remoteEnded) {
      this.connectionState = "connected";
      this.dispatchEvent(new Event("connectionstatechange"));
    }
  }

  #needed(): void {
    setTimeout(() => {
      const needed = this.#wanted > this.#negotiated || (this.#channel && !this.#hasChannel);
      if (this.signalingState === "stable" && needed) {
        this.dispatchEvent(new Event("negotiationneeded"));
      }
    }, 0);
  }

  #gather(): void {
    if (this.signalingState === "closed") {
      return;
    }
    this.gatherings.push(this.configuration.iceServers);
    for (const at of [1, 2]) {
      const usernameFragment = this.#ufrag;
      const init = { candidate: `candidate:${at}`, sdpMid: "0", usernameFragment };
      this.#tell({ ...init, toJSON: () => init });
    }
    this.#tell(null);
    if (this.localDescription !== null) {
      // As in a browser, the description grows with what was gathered.
      const sdp = `${this.localDescription.sdp}a=candidate:1\r\na=end-of-candidates\r\n`;
      this.localDescription = { type: this.localDescription.type, sdp };
    }
  }

  #tell(candidate: unknown): void {
    this.dispatchEvent(Object.assign(new Event("icecandidate"), { candidate }));
  }

  #describe(type: "offer" | "answer"): Description {
    if (type === "offer") {
      this.#version += 1;
    }
    const answers = type === "answer" ? /a=offer:(\S+)/.exec(this.remoteDescription?.sdp ?? "")?.[1] : undefined;
    const carriesChannel =
      type === "offer" ? this.#channel || this.#hasChannel : this.remoteDescription?.sdp.includes("m=application");
    const lines = [
      "v=0",
      `o=- ${this.id} ${this.#version} IN IP4 127.0.0.1`,
      `a=ice-ufrag:${this.#ufrag}`,
      answers === undefined ? `a=offer:${this.id}.${this.#version}` : `a=answers:${answers}`,
      ...(carriesChannel ? ["m=application 9 UDP/DTLS/SCTP webrtc-datachannel"] : []),
      "",
    ];
    return { type, sdp: lines.join("\r\n") };
  }

  get #ufrag(): string {
    return `${this.id}u${this.#ice}`;
  }

  /** What a browser does takes turns of the event loop. */
  async #work(): Promise<void> {
    this.#require(this.signalingState !== "closed");
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#require(this.signalingState !== "closed");
  }

  #require(condition: boolean): void {
    if (!condition) {
      throw new DOMException("in this state that can't be", "InvalidStateError");
    }
  }
}

/**
 * Connects an `RTCPeerConnection` through a session: `connect(() => new RTCPeerConnection(), session)`.
 *
 * The role comes with the relay's welcome, so both sides call the same thing. When the peer reloads its page, a
 * connection to the page that is gone can't be mended (other keys), so a new one is made and negotiated.
 *
 *     session "restart" | a message of another page load | an offer of another RTCPeerConnection -> new leg
 *
 * Invariant: everything that changes a negotiation runs one after the other, in the order in which it came.
 */

import { Emitter } from "./emitter.js";
import type { SignalMessage } from "./envelope.js";
import type { IceServer } from "./frames.js";
import { Leg, type LegOwner, type LegProblem } from "./leg.js";
import type { Session } from "./session.js";
import type { MessageEvent } from "./session-types.js";

/** Makes an `RTCPeerConnection` with all that it shall carry: channels, tracks, listeners. */
export type MakePeerConnection = () => RTCPeerConnection;

/** What went wrong. The negotiation goes on as far as it can. */
export type ConnectProblem =
  | LegProblem
  /** The peer reloaded, and the one `RTCPeerConnection` we were given is used up: pass a function instead. */
  | "needs_new_connection"
  /** The session took no more messages. */
  | "not_sent";

export interface ConnectionEvents {
  /** The peer reloaded: the connection before is closed, and this one negotiates in its place. */
  replaced: { readonly type: "replaced"; readonly peerConnection: RTCPeerConnection };
  problem: { readonly type: "problem"; readonly reason: ConnectProblem };
}

/**
 * Negotiates until `close` is called or the session is over. Starts the session if that was not done. TURN servers of
 * the relay are added to those that the application configured.
 *
 * Given one `RTCPeerConnection` instead of a function, it can't follow a reload of the peer after the first answer; and
 * it must be given before the browser says `negotiationneeded`, so in the turn that made it.
 */
export function connect(peerConnection: RTCPeerConnection | MakePeerConnection, session: Session): Connection {
  return new Connection(peerConnection, session);
}

export class Connection extends Emitter<ConnectionEvents> {
  readonly #source: RTCPeerConnection | MakePeerConnection;
  readonly #session: Session;
  readonly #stops: (() => void)[];
  #queue: Promise<void> = Promise.resolve();
  #leg: Leg;
  #iceServers: readonly IceServer[] = [];
  /** Of the peer, the page load that the leg talks to. */
  #load: number | undefined;
  #closed = false;

  /** @internal Use {@link connect}. */
  constructor(source: RTCPeerConnection | MakePeerConnection, session: Session) {
    super();
    this.#source = source;
    this.#session = session;
    this.#iceServers = session.iceServers;
    const welcomed = session.slot === undefined ? session.next("welcome") : undefined;
    this.#stops = [
      session.on("welcome", ({ iceServers }) => {
        this.#useServers(iceServers);
      }),
      session.on("ice", ({ iceServers }) => {
        this.#useServers(iceServers);
      }),
      session.on("restart", () => {
        this.#enqueue(() => {
          this.#restart();
        });
      }),
      session.on("message", (message) => {
        this.#enqueue(() => this.#take(message));
      }),
    ];
    // Nothing before the welcome: the relay may have TURN servers for the first gathering.
    this.#enqueue(async () => {
      await welcomed;
    });
    this.#leg = this.#begin(typeof source === "function" ? source() : source);
    session.start();
  }

  /** The one in use. */
  get peerConnection(): RTCPeerConnection {
    return this.#leg.peerConnection;
  }

  /** Stops negotiating. Leaves the `RTCPeerConnection` and the session as they are. */
  close(): void {
    this.#closed = true;
    this.#leg.retire();
    for (const stop of this.#stops) {
      stop();
    }
  }

  #begin(peerConnection: RTCPeerConnection): Leg {
    this.#configure(peerConnection);
    return new Leg(peerConnection, this.#owner());
  }

  #owner(): LegOwner {
    return {
      polite: () => this.#session.slot === "b",
      send: (message) => {
        this.#send(message);
      },
      report: (problem) => {
        this.#report(problem);
      },
      enqueue: (job) => {
        this.#enqueue(job);
      },
      failed: () => {
        this.#session.refreshIce();
        this.#leg.peerConnection.restartIce();
      },
    };
  }

  async #take(message: MessageEvent): Promise<void> {
    const { kind, load } = message;
    if (kind !== "offer" && kind !== "answer" && kind !== "candidate") {
      return; // The application's own.
    }
    if (this.#load !== undefined && load !== this.#load) {
      this.#restart();
    }
    this.#load = load;
    if (kind === "offer" && this.#leg.isFromAnother(message.value)) {
      this.#renew();
    }
    await this.#leg.take(message);
  }

  /** The peer's page load that we talked to is gone. */
  #restart(): void {
    this.#load = undefined;
    if (this.#leg.bound) {
      this.#renew();
    } else {
      this.#leg.offerAgain();
    }
  }

  #renew(): void {
    if (typeof this.#source !== "function") {
      this.#report("needs_new_connection");
      return;
    }
    this.#leg.retire();
    this.#leg.peerConnection.close();
    this.#leg = this.#begin(this.#source());
    this.emit({ type: "replaced", peerConnection: this.#leg.peerConnection });
  }

  #send(message: SignalMessage): void {
    this.#session.send(message).catch(() => {
      this.#report("not_sent");
    });
  }

  #useServers(iceServers: readonly IceServer[]): void {
    this.#iceServers = iceServers;
    this.#configure(this.#leg.peerConnection);
  }

  /** For the gatherings to come. */
  #configure(peerConnection: RTCPeerConnection): void {
    if (this.#iceServers.length === 0 || peerConnection.signalingState === "closed") {
      return;
    }
    const configuration = peerConnection.getConfiguration();
    const ours = new Set(this.#iceServers.map(({ urls }) => String(urls)));
    const theirs = (configuration.iceServers ?? []).filter(({ urls }) => !ours.has(String(urls)));
    peerConnection.setConfiguration({ ...configuration, iceServers: [...theirs, ...this.#iceServers] });
  }

  #report(reason: ConnectProblem): void {
    if (!this.#closed) {
      this.emit({ type: "problem", reason });
    }
  }

  #enqueue(job: () => Promise<void> | void): void {
    this.#queue = this.#queue.then(() => (this.#closed ? undefined : job()));
  }
}

/**
 * Connects an `RTCPeerConnection` through a session: `connect(() => new RTCPeerConnection(), session)`.
 *
 * The role comes with the relay's welcome, so both sides call the same thing. When a page reloads, the other side's
 * connection to the page that is gone can't be mended (other keys), so both need a new one, and have to agree on which
 * belong together while messages of the old ones still arrive. The impolite side decides: it names a *pairing*, and
 * another one when the peer's page is another. Every negotiation carries the name.
 *
 *     impolite: begin -> name a pairing; peer reloaded, and our leg is used -> new leg, new pairing
 *               message of another pairing -> dropped
 *     polite:   message of another pairing -> new leg for it, unless ours is unused; no offer before the first
 *
 * A peer that doesn't use this helper names no pairings. Its messages are for the leg that is there; an offer of another
 * `RTCPeerConnection` of it makes a new one.
 *
 * Invariant: everything that changes a negotiation runs one after the other, in the order in which it came; and both
 * sides end up with the pairing that the impolite side named last, since its messages come in order.
 */

import { randomBytes, toBase64Url } from "./bytes.js";
import { Emitter } from "./emitter.js";
import type { SignalMessage } from "./envelope.js";
import type { IceServer } from "./frames.js";
import { Leg, type LegOwner, type LegProblem } from "./leg.js";
import type { Session } from "./session.js";
import type { MessageEvent } from "./session-types.js";

/** Tells the name of a pairing. */
const PAIRING = "pairing";
/** The kinds of message that are ours; all others are the application's. */
const KINDS = new Set(["offer", "answer", "candidate", PAIRING]);
/** Of a peer that names none. */
const UNNAMED = "unnamed";
/** A browser that needs a negotiation says so within a few milliseconds. */
const OFFER_WAIT_MS = 50;
const NAME_BYTES = 9;
const NAMED = /^pairing-[A-Za-z0-9_-]{12}(?=$|[.])/;

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
  #pairing: string | undefined;
  /** The polite side has something to offer, and waits for the first word of the other. */
  #waiting = false;
  /** The peer was told the pairing, or will be by what is on its way. */
  #told = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
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
      if (this.#decides) {
        this.#namePairing();
      }
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
    clearTimeout(this.#timer);
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
      polite: () => !this.#decides,
      send: (message) => {
        this.#send(message);
      },
      report: (problem) => {
        this.#report(problem);
      },
      nameNegotiation: () => `${this.#pairing ?? ""}.${randomName()}`,
      wantsOffer: (leg) => {
        this.#enqueue(() => this.#offer(leg));
      },
      failed: () => {
        this.#session.refreshIce();
        this.#leg.peerConnection.restartIce();
      },
    };
  }

  async #offer(leg: Leg): Promise<void> {
    if (leg === this.#leg) {
      this.#waiting = this.#pairing === undefined;
      await (this.#waiting ? undefined : leg.offer());
    }
  }

  async #take(message: MessageEvent): Promise<void> {
    const { kind, load, negotiation } = message;
    if (!KINDS.has(kind)) {
      return; // The application's own.
    }
    if (this.#load !== undefined && load !== this.#load) {
      this.#restart();
    }
    this.#load = load;
    if (!this.#belongs(negotiation)) {
      return;
    }
    if (kind === "offer" && this.#leg.isFromAnother(message.value)) {
      this.#renew();
    }
    await this.#leg.take(message);
    if (this.#waiting) {
      await this.#offer(this.#leg);
    }
  }

  /** Whether this negotiation is for our leg; the polite side makes that so. */
  #belongs(negotiation: string): boolean {
    const [pairing] = NAMED.exec(negotiation) ?? [this.#pairing ?? UNNAMED];
    if (pairing === this.#pairing) {
      return true;
    }
    if (this.#decides || (this.#leg.used && !this.#renew())) {
      return false;
    }
    this.#pairing = pairing;
    return true;
  }

  /**
   * The peer's page load that we talked to is gone. A leg with an offer without an answer is replaced, too: the page
   * may have begun to connect to it before it went.
   */
  #restart(): void {
    this.#load = undefined;
    const offersAgain = this.#decides && typeof this.#source !== "function" && !this.#leg.bound;
    const replaces = this.#leg.used && !offersAgain;
    if (replaces && !this.#renew()) {
      return;
    }
    if (!this.#decides) {
      this.#pairing = undefined;
    } else if (replaces) {
      this.#namePairing();
    } else {
      this.#tellPairingSoon();
      this.#leg.offerAgain();
    }
  }

  #namePairing(): void {
    this.#pairing = `pairing-${randomName()}`;
    this.#tellPairingSoon();
  }

  /**
   * An offer of ours tells the pairing as well, and is better: the polite side, which waits for our first word, then
   * answers it, where it would have made an offer of its own and had to roll it back.
   */
  #tellPairingSoon(): void {
    this.#told = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#enqueue(() => {
        if (!this.#told) {
          this.#send({ kind: PAIRING, negotiation: this.#pairing ?? UNNAMED, value: null });
        }
      });
    }, OFFER_WAIT_MS);
  }

  get #decides(): boolean {
    return this.#session.slot === "a";
  }

  /** A new leg in place of the one before; false when we were given only one connection. */
  #renew(): boolean {
    if (typeof this.#source !== "function") {
      this.#report("needs_new_connection");
      return false;
    }
    this.#leg.retire();
    this.#leg.peerConnection.close();
    this.#leg = this.#begin(this.#source());
    this.emit({ type: "replaced", peerConnection: this.#leg.peerConnection });
    return true;
  }

  #send(message: SignalMessage): void {
    this.#told ||= message.kind === "offer" || message.kind === PAIRING;
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

function randomName(): string {
  return toBase64Url(randomBytes(NAME_BYTES));
}

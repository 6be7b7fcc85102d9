/** One session on the page: the client library at work, and all that shows it. {@link Scene} wires them up. */

import { connect, fromBase64Url, type CloseReason, type Session } from "@sovereignfs/relay-client";
import { cutWire, endSession, refuseAll } from "./backend.js";
import { Chat } from "./chat.js";
import { announce, byId, byKind, onPress } from "./dom.js";
import { Ledger } from "./ledger.js";
import { nameTabs, showDirect, showOwn, showPeer } from "./map.js";
import { forget, keep, link, type Place } from "./place.js";
import { afterMessage, atFirst, renewed, showSteps, type Progress } from "./steps.js";
import { WatchedSession } from "./watched.js";
import { endInWords, roleInWords, tookSeconds } from "./words.js";

const DISTURBANCES = ["cut", "refuse", "end"];
const COPIED_MS = 2_000;

export class Scene {
  #place: Place;
  #progress: Progress;
  readonly #session: Session;
  readonly #chat = new Chat();
  readonly #ledger: Ledger;
  /** Since when the socket is cut. */
  #cutAt: number | undefined;
  #endedHere = false;

  constructor(place: Place, url: string) {
    const secret = fromBase64Url(place.secret);
    if (secret === undefined) {
      throw new TypeError("the link is incomplete");
    }
    this.#place = place;
    this.#progress = atFirst(
      place.slot === "a" ? "a ticket for each side, a secret for both" : "ticket and secret came with the link",
    );
    this.#ledger = new Ledger((direction, message) => {
      this.#advance(afterMessage(this.#progress, direction, message));
    });
    this.#session = new WatchedSession({ url, sessionId: place.sessionId, ticket: place.ticket, secret }, this.#ledger);
  }

  /** Shows it, and shakes hands. */
  start(): void {
    this.#show();
    this.#offerButtons();
    this.#listen();
    const connection = connect(() => this.#makeConnection(), this.#session);
    connection.on("replaced", () => {
      announce("The other side reloaded: a new connection is negotiated");
      this.#advance(renewed(this.#progress));
    });
  }

  #show(): void {
    nameTabs(this.#place.slot);
    showSteps(this.#progress);
    showDirect(false, "new");
    byId("expiry").textContent = `expires ${new Date(this.#place.expiresAt).toLocaleTimeString()}`;
    const address = link(this.#place);
    byId("invite").hidden = address === undefined;
    byKind("open-link", HTMLAnchorElement).href = address ?? "/";
  }

  /** What one `RTCPeerConnection` carries. Called again when the other side reloads. */
  #makeConnection(): RTCPeerConnection {
    const peerConnection = new RTCPeerConnection();
    const channel = peerConnection.createDataChannel("chat", { negotiated: true, id: 0 });
    this.#chat.attach(channel, () => {
      this.#showDirect(peerConnection);
    });
    peerConnection.onconnectionstatechange = () => {
      this.#showDirect(peerConnection);
    };
    return peerConnection;
  }

  #listen(): void {
    const session = this.#session;
    session.on("state", ({ state, retryInMs }) => {
      showOwn(state, retryInMs);
      if (this.#progress.welcome !== undefined || state === "closed") {
        showPeer(session.peer, state);
      }
      if (state === "waiting") {
        this.#lose();
      }
    });
    session.on("welcome", ({ role, generation, resumed }) => {
      const load = generation === 1 ? "first page load" : `page load ${generation}`;
      const welcome = `${roleInWords(role)}, ${load}${resumed ? ", resumed" : ""}`;
      this.#advance({ ...this.#progress, welcome });
      this.#return(resumed);
    });
    session.on("peer", ({ state }) => {
      showPeer(state, session.state);
      announce(`The other side is ${state}`);
      this.#advance({ ...this.#progress, peerHere: this.#progress.peerHere || state === "online" });
      if (state === "online") {
        this.#forgetInvitation();
      }
    });
    session.on("closed", ({ reason }) => {
      this.#finish(reason);
    });
  }

  /** The socket is gone. Said once, however many dials fail. */
  #lose(): void {
    if (this.#cutAt === undefined) {
      this.#cutAt = performance.now();
      this.#trace("Socket cut. Messages wait until it is back.");
    }
  }

  #return(resumed: boolean): void {
    if (this.#cutAt === undefined || !resumed) {
      announce("Connected to the relay");
    } else {
      this.#trace(`Socket back after ${tookSeconds(performance.now() - this.#cutAt)}, nothing lost.`);
    }
    this.#cutAt = undefined;
  }

  #trace(text: string): void {
    byId("trace").textContent = text;
    this.#ledger.note(text);
    announce(text);
  }

  /** The other side has its ticket: ours to give away no longer. */
  #forgetInvitation(): void {
    const { invitation, ...place } = this.#place;
    if (invitation !== undefined) {
      const hadFocus = byId("invite").contains(document.activeElement);
      this.#place = place;
      keep(place);
      byId("invite").hidden = true;
      byKind("open-link", HTMLAnchorElement).href = "/";
      if (hadFocus) {
        byId("session-title").focus();
      }
    }
  }

  #offerButtons(): void {
    const { slot } = this.#place;
    onPress("copy-link", () => {
      void this.#copyLink();
    });
    onPress("cut", () => {
      void cutWire(slot);
    });
    onPress("refuse", () => {
      void refuseAll();
    });
    onPress("reload", () => {
      location.reload();
    });
    onPress("end", () => {
      void this.#end();
    });
    onPress("again", () => {
      location.reload();
    });
  }

  async #copyLink(): Promise<void> {
    await navigator.clipboard.writeText(link(this.#place) ?? "");
    const button = byId("copy-link");
    button.textContent = "Copied";
    announce("Link copied");
    setTimeout(() => {
      button.textContent = "Copy link";
    }, COPIED_MS);
  }

  /** The instance deletes the session, and the relay tells both sides; without an answer this side leaves. */
  async #end(): Promise<void> {
    this.#endedHere = true;
    byKind("end", HTMLButtonElement).disabled = true;
    try {
      await endSession(this.#place.sessionId);
    } catch {
      this.#session.close();
    }
  }

  /** The secrets are of no more use. A data channel that is open goes on: it never needed the relay. */
  #finish(reason: CloseReason): void {
    forget();
    for (const id of DISTURBANCES) {
      byKind(id, HTMLButtonElement).disabled = true;
    }
    byId("invite").hidden = true;
    byId("expiry").hidden = true;
    byId("trace").textContent = "";
    byId("over").hidden = false;
    const { title, text } = endInWords({
      reason,
      here: this.#endedHere,
      expired: Date.now() >= Date.parse(this.#place.expiresAt),
      connected: this.#chat.isOpen,
    });
    byId("over-title").textContent = title;
    byId("over-reason").textContent = text;
    announce(title);
    byId("again").focus();
  }

  #showDirect(peerConnection: RTCPeerConnection): void {
    showDirect(this.#chat.isOpen, peerConnection.connectionState);
    this.#advance({ ...this.#progress, connected: this.#chat.isOpen });
  }

  #advance(progress: Progress): void {
    this.#progress = progress;
    showSteps(progress);
  }
}

/** One session on the page: the client library at work, and all that shows it. {@link Scene} wires them up. */

import { connect, fromBase64Url, moodOf, type CloseReason, type Connection, type Session } from "@sovereignfs/relay-client";
import { cutWire, refuseAll } from "./backend.js";
import { Chat } from "./chat.js";
import { announce, byId, byKind, onPress } from "./dom.js";
import { Ledger } from "./ledger.js";
import { nameTabs, showDirect, showOwn, showPeer } from "./map.js";
import { forget, keep, link, type Place } from "./place.js";
import { afterMessage, atFirst, renewed, showSteps, type Progress } from "./steps.js";
import { WatchedSession } from "./watched.js";

const DISTURBANCES = ["cut", "refuse", "end"];

export class Scene {
  #place: Place;
  #progress: Progress;
  readonly #session: Session;
  readonly #chat = new Chat();
  #connection: Connection | undefined;

  constructor(place: Place, url: string) {
    const secret = fromBase64Url(place.secret);
    if (secret === undefined) {
      throw new TypeError("the link is incomplete");
    }
    this.#place = place;
    this.#progress = atFirst(
      place.slot === "a" ? "a ticket for each side, a secret for both" : "ticket and secret came with the link",
    );
    const ledger = new Ledger((direction, message) => {
      this.#advance(afterMessage(this.#progress, direction, message));
    });
    this.#session = new WatchedSession({ url, sessionId: place.sessionId, ticket: place.ticket, secret }, ledger);
  }

  /** Shows it, and shakes hands. */
  start(): void {
    this.#show();
    this.#offerButtons();
    this.#listen();
    this.#connection = connect(() => this.#makeConnection(), this.#session);
    this.#connection.on("replaced", () => {
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
      if (state === "waiting") {
        announce("The socket to the relay is cut");
      }
    });
    session.on("welcome", ({ role, generation, resumed }) => {
      const load = generation === 1 ? "first page load" : `page load ${generation}`;
      this.#advance({ ...this.#progress, welcome: `welcome: ${role}, ${load}${resumed ? ", resumed" : ""}` });
      announce(resumed ? "Resumed: nothing was lost" : "Connected to the relay");
    });
    session.on("peer", ({ state }) => {
      showPeer(state);
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
      void this.#leave();
    });
    onPress("again", () => {
      location.reload();
    });
  }

  async #copyLink(): Promise<void> {
    await navigator.clipboard.writeText(link(this.#place) ?? "");
    byId("copy-link").textContent = "Copied";
    announce("Link copied");
  }

  async #leave(): Promise<void> {
    const peerConnection = this.#connection?.peerConnection;
    this.#session.close(peerConnection === undefined ? "cancelled" : await moodOf(peerConnection));
  }

  /** The secrets are of no more use. A data channel that is open goes on: it never needed the relay. */
  #finish(reason: CloseReason): void {
    forget();
    for (const id of DISTURBANCES) {
      byKind(id, HTMLButtonElement).disabled = true;
    }
    byId("invite").hidden = true;
    byId("over").hidden = false;
    byId("over-reason").textContent = SENTENCES[reason] ?? `The relay closed it (${reason}).`;
    announce("The session is over");
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

const SENTENCES: Partial<Record<CloseReason, string>> = {
  left: "You ended it.",
  over: "Its time is up, or both sides left.",
  no_session: "The relay doesn’t know it (any more).",
  replaced: "Another tab took this place.",
  bad_ticket: "The link is wrong or too old.",
};

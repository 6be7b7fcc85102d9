/** The page's main exhibit: what the relay saw beside what the tabs saw, frame by frame. */

import type { SignalMessage } from "@sovereignfs/relay-client";
import { appendFollowing, byId, make } from "./dom.js";
import type { Watcher } from "./watched.js";
import { describe, inFull, shorten } from "./words.js";

/** More than a session has room for in one page load; the oldest go. */
const ROWS_MAX = 400;

export class Ledger implements Watcher {
  readonly #list = byId("ledger");
  readonly #sent = new Map<number, Row>();
  readonly #came = new Map<number, Row>();
  readonly #onMessage: (direction: "out" | "in", message: SignalMessage) => void;
  #stored = 0;

  /** `onMessage` hears of each message once it is on the wire or opened. */
  constructor(onMessage: (direction: "out" | "in", message: SignalMessage) => void) {
    this.#onMessage = onMessage;
  }

  sending(n: number, message: SignalMessage): void {
    const row = new Row("out");
    row.open(message);
    row.wait();
    this.#sent.set(n, row);
    this.#add(row.element);
  }

  sent(n: number, sealed: string): void {
    const row = this.#sent.get(n);
    row?.seal(sealed);
    if (row?.message !== undefined && row.times === 1) {
      this.#onMessage("out", row.message);
    }
  }

  stored(n: number): void {
    for (; this.#stored < n; this.#stored += 1) {
      this.#sent.get(this.#stored + 1)?.store();
    }
  }

  came(seq: number, sealed: string): void {
    const row = new Row("in");
    row.seal(sealed);
    this.#came.set(seq, row);
    this.#add(row.element);
  }

  opened(seq: number, message: SignalMessage | undefined): void {
    const row = this.#came.get(seq);
    if (message === undefined) {
      row?.reject();
    } else {
      row?.open(message);
      this.#onMessage("in", message);
    }
  }

  greeted(direction: "out" | "in", text: string): void {
    this.#add(make("li", `greeting ${direction}`, arrow(direction), make("span", "", text)));
  }

  /** Something that happened to the socket between frames. */
  note(text: string): void {
    this.#add(make("li", "greeting note", make("span", ""), make("span", "", text)));
  }

  #add(item: HTMLElement): void {
    appendFollowing(this.#list, item);
    if (this.#list.childElementCount > ROWS_MAX) {
      this.#list.firstElementChild?.remove();
    }
  }
}

/** One message, both ways of seeing it. A press shows all of it. */
class Row {
  readonly element: HTMLElement;
  readonly #sealed = make("span", "sealed");
  readonly #opened = make("span", "opened");
  readonly #allSealed = make("pre", "all sealed-text");
  readonly #allOpened = make("pre", "all opened-text");
  message: SignalMessage | undefined;
  times = 0;
  #mark = "";
  #text = "";

  constructor(direction: "out" | "in") {
    const summary = make("summary", "", arrow(direction), this.#sealed, this.#opened);
    const all = make("div", "both", this.#allSealed, this.#allOpened);
    this.element = make("li", `row ${direction}`, make("details", "", summary, all));
  }

  wait(): void {
    this.#sealed.replaceChildren(make("i", "", "waits for the relay"));
  }

  seal(text: string): void {
    this.times += 1;
    this.#text = text;
    this.#allSealed.textContent = text;
    if (this.times > 1) {
      this.#mark = `sent ${this.times} times`;
    }
    this.#showSealed();
  }

  store(): void {
    this.#mark = this.times > 1 ? `sent ${this.times} times, stored once` : "stored";
    this.#showSealed();
  }

  open(message: SignalMessage): void {
    this.message = message;
    const kind = make("b", `kind ${message.kind}`, message.kind);
    this.#opened.replaceChildren(kind, " ", make("span", "words", describe(message)));
    this.#allOpened.textContent = inFull(message);
  }

  reject(): void {
    this.#opened.replaceChildren(make("b", "kind rejected", "not authentic"), " not taken");
  }

  #showSealed(): void {
    const { head, size } = shorten(this.#text);
    const mark = this.#mark === "" ? "" : ` · ${this.#mark}`;
    this.#sealed.replaceChildren(make("code", "", head), " ", make("small", "", size + mark));
  }
}

function arrow(direction: "out" | "in"): HTMLElement {
  const word = make("span", "unseen", direction === "out" ? "sent " : "came ");
  const sign = make("span", "", direction === "out" ? "↑" : "↓");
  sign.ariaHidden = "true";
  return make("span", "arrow", word, sign);
}

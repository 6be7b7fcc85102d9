/** Chat over the data channel: what is said here never comes near the relay. */

import { announce, appendFollowing, byId, byKind, make } from "./dom.js";

export class Chat {
  readonly #log = byId("chat-log");
  readonly #text = byKind("chat-text", HTMLInputElement);
  readonly #button = byKind("chat-send", HTMLButtonElement);
  #channel: RTCDataChannel | undefined;

  constructor() {
    byKind("chat-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#use(false);
  }

  /** Talks over this channel as soon as it is open; an earlier one is forgotten. */
  attach(channel: RTCDataChannel, onChange: () => void): void {
    this.#channel = channel;
    channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      this.#say("theirs", "Peer", String(data));
    };
    channel.onopen = () => {
      if (channel === this.#channel) {
        this.#use(true);
        this.#note("Connected, tab to tab");
        announce("Connected: you can chat");
        onChange();
      }
    };
    channel.onclose = () => {
      if (channel === this.#channel) {
        this.#use(false);
        this.#note("The connection is gone");
        onChange();
      }
    };
    this.#use(false);
  }

  /** Whether words get through. */
  get isOpen(): boolean {
    return this.#channel?.readyState === "open";
  }

  #send(): void {
    const text = this.#text.value.trim();
    if (text === "" || this.#channel?.readyState !== "open") {
      return;
    }
    this.#channel.send(text);
    this.#text.value = "";
    this.#say("own", "You", text);
  }

  #use(isOpen: boolean): void {
    this.#text.disabled = !isOpen;
    this.#button.disabled = !isOpen;
    this.#text.placeholder = isOpen ? "Say something" : "Not connected yet";
  }

  #say(className: string, who: string, text: string): void {
    appendFollowing(this.#log, make("li", className, make("span", "unseen", `${who}: `), text));
  }

  #note(text: string): void {
    appendFollowing(this.#log, make("li", "note", text));
  }
}

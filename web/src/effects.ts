/** Collects what one input leads to. The core hands the list to the shell and begins a new one. */

import type { CoreEvent, Delivery, Effect } from "./core-types.js";

export class Effects {
  #list: Effect[] = [];

  dial(dial: number): void {
    this.#list.push({ do: "dial", dial });
  }

  transmit(dial: number, frame: string): void {
    this.#list.push({ do: "transmit", dial, frame });
  }

  hangUp(dial: number, code: number): void {
    this.#list.push({ do: "hang-up", dial, code });
  }

  emit(event: CoreEvent): void {
    this.#list.push({ do: "emit", event });
  }

  deliver(delivery: Omit<Delivery, "do">): void {
    this.#list.push({ do: "deliver", ...delivery });
  }

  take(): Effect[] {
    const list = this.#list;
    this.#list = [];
    return list;
  }
}

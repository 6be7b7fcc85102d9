/** Typed events. A listener that throws breaks nothing but itself: its error surfaces as an uncaught one. */

type Listener<Event> = (event: Event) => void;

/** `Events` maps each type to its event. */
export class Emitter<Events extends { [Type in keyof Events]: { readonly type: Type } }> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Calls `listener` for each event of this type, until the function that is returned is called. */
  on<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): () => void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return () => {
      listeners.delete(listener);
    };
  }

  /** The next event of this type. */
  async next<Type extends keyof Events>(type: Type): Promise<Events[Type]> {
    return new Promise((resolve) => {
      const stop = this.on(type, (event) => {
        stop();
        resolve(event);
      });
    });
  }

  protected emit(event: Events[keyof Events]): void {
    const type: keyof Events = event.type as keyof Events;
    const listeners = this.#listeners.get(type) as Set<Listener<typeof event>> | undefined;
    for (const listener of [...(listeners ?? [])]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

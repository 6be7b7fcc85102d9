/** Typed events. A listener that throws breaks nothing but itself: its error surfaces as an uncaught one. */
type Listener<Event> = (event: Event) => void;
/** `Events` maps each type to its event. */
export declare class Emitter<Events extends {
    [Type in keyof Events]: {
        readonly type: Type;
    };
}> {
    #private;
    /** Calls `listener` for each event of this type, until the function that is returned is called. */
    on<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): () => void;
    /** The next event of this type. */
    next<Type extends keyof Events>(type: Type): Promise<Events[Type]>;
    protected emit(event: Events[keyof Events]): void;
}
export {};

/** Collects what one input leads to. The core hands the list to the shell and begins a new one. */
import type { CoreEvent, Delivery, Effect } from "./core-types.js";
export declare class Effects {
    #private;
    dial(dial: number): void;
    transmit(dial: number, frame: string): void;
    hangUp(dial: number, code: number): void;
    emit(event: CoreEvent): void;
    deliver(delivery: Omit<Delivery, "do">): void;
    take(): Effect[];
}

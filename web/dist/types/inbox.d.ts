/**
 * What the relay sends us in sequence, and our acknowledgements. Pure; the core calls it.
 *
 * `received` is the highest seq handed to the application, `processed` the highest it is done with: only that is
 * acknowledged, so that a page that dies in between gets the rest again.
 *
 * Invariant: every seq is handed on once and in order, and generations of the peer never go back.
 */
import type { SessionLimits } from "./frames.js";
/**
 * `new`: hand it on. `restart`: likewise, and a page load of the peer took another's place just before it. `stale`: of
 * a generation that was replaced. `known`: it comes again after a resume, since it wasn't acknowledged. `repeated` and
 * `sequence_gap`: the relay is out of sequence. `flood`: it sends more than a mailbox holds without waiting for us.
 */
export type Arrival = "new" | "restart" | "stale" | "known" | "repeated" | "sequence_gap" | "flood";
export declare class Inbox {
    #private;
    /** When the next acknowledgement is due. */
    get deadline(): number;
    /** For the hello of a new connection: the highest seq that the application is done with. */
    greet(): number;
    /** Its welcome: the relay dropped everything up to `base`. False when some of that we never saw. */
    welcomed(base: number, { mailboxMessages }: SessionLimits, now: number): boolean;
    /** Something with this number came from this generation of the peer; `announced`: it tells of the generation. */
    arrived(seq: number, generation: number, announced: boolean): Arrival;
    /** The application is done with `seq` and all before it. */
    done(seq: number, now: number): void;
    /** The seq to acknowledge now, if any. `flush` doesn't wait for company. */
    takeDue(now: number, flush?: boolean): number | undefined;
}

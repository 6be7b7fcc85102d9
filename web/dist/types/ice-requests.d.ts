/** Requests for fresh TURN credentials: the relay answers one per 30 s, so the rest wait and become one. Pure. */
export declare class IceRequests {
    #private;
    get deadline(): number;
    want(): void;
    /** True when a request goes out now. */
    takeDue(now: number): boolean;
}

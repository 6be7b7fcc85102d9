/** The session's one WebSocket: opens, replaces and abandons it. Which dial a socket belongs to is told with all of it. */
import type { WebSocketConstructor } from "./platform.js";
/** What a socket tells. */
export interface SocketEvents {
    opened(dial: number): void;
    received(dial: number, data: unknown): void;
    closed(dial: number, code: number): void;
}
export declare class Socket {
    #private;
    constructor(url: string, webSocket: WebSocketConstructor, events: SocketEvents);
    /** Opens a socket in place of the one before. */
    dial(dial: number): void;
    /** Sends on this dial's socket, if it still is the one. */
    transmit(dial: number, frame: string): void;
    /** Closes this dial's socket, if it still is the one. */
    hangUp(dial: number, code: number): void;
    /** The socket closes in its own time; nobody listens any longer. */
    abandon(code?: number): void;
}

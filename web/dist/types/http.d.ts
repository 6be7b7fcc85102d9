/** Requests to the relay's HTTP API: one form of errors, a time limit, and a key that goes nowhere but its header. */
import { type ErrorCode, type Result } from "./instance-types.js";
export interface HttpOptions {
    readonly instanceKey?: string;
    /** Per request; 30 s by default. */
    readonly timeoutMs?: number;
    /** Instead of the global one: an agent with a proxy, a test. */
    readonly fetch?: typeof fetch;
}
export interface Request {
    readonly body?: unknown;
    /** Instead of the instance key; null: none. */
    readonly bearer?: string | null;
    readonly timeoutMs?: number;
}
/** A JSON object. */
export type Fields = Readonly<Record<string, unknown>>;
/** Makes the typed value of an answer, or `undefined` when it isn't one. */
export type Reader<T> = (fields: Fields, status: number) => {
    readonly value: T;
} | undefined;
export declare class Http {
    #private;
    constructor(url: string, options: HttpOptions);
    /** Sends a request and reads its answer. */
    call<T>(method: string, path: string, request: Request, read: Reader<T>): Promise<Result<T>>;
}
/** A code as the relay may send it. */
export declare function isErrorCode(value: unknown): value is ErrorCode;
/** A JSON object, and nothing else. */
export declare function isObject(value: unknown): value is Fields;

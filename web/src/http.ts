/** Requests to the relay's HTTP API: one form of errors, a time limit, and a key that goes nowhere but its header. */

import { ERROR_CODES, type ErrorCode, type Failure, type Result } from "./instance-types.js";

/** A push has its deadline at the relay, 10 s or what the operator says, up to 17 s. */
const TIMEOUT_MS = 30_000;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

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
export type Reader<T> = (fields: Fields, status: number) => { readonly value: T } | undefined;

export class Http {
  readonly #base: string;
  readonly #options: HttpOptions;

  constructor(url: string, options: HttpOptions) {
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError("the relay's url must begin with https:// or http://");
    }
    this.#base = url.replace(/[/]+$/, "");
    this.#options = options;
  }

  /** Sends a request and reads its answer. */
  async call<T>(method: string, path: string, request: Request, read: Reader<T>): Promise<Result<T>> {
    const init = this.#init(method, request);
    let response: Response;
    let text: string;
    try {
      response = await (this.#options.fetch ?? fetch)(this.#base + path, init);
      text = await response.text();
    } catch (error) {
      return unanswered(error);
    }
    const fields = text === "" ? {} : readObject(text);
    if (!response.ok) {
      return refusal(response, fields);
    }
    const answer = fields === undefined ? undefined : read(fields, response.status);
    return answer === undefined ? unexpected(response) : { ok: true, value: answer.value };
  }

  #init(method: string, { body, bearer, timeoutMs }: Request): RequestInit {
    const headers: Record<string, string> = { accept: "application/json" };
    const token = bearer === undefined ? this.#options.instanceKey : bearer;
    if (token === undefined || (token !== null && !VISIBLE_ASCII.test(token))) {
      throw new TypeError("this call needs an instance key, visible ASCII as the relay gave it");
    }
    if (token !== null) {
      headers["authorization"] = `Bearer ${token}`;
    }
    if (body !== undefined) {
      headers["content-type"] = "application/json";
    }
    return {
      method,
      headers,
      // The key is for this relay alone.
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
  }
}

/** A code as the relay may send it. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return (ERROR_CODES as readonly unknown[]).includes(value);
}

/** A JSON object, and nothing else. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unanswered(error: unknown): Failure {
  const name = error instanceof Error ? error.name : "";
  if (name === "TimeoutError" || name === "AbortError") {
    return { ok: false, error: "timed_out", message: "the relay did not answer in time" };
  }
  // Only the system's code: sentences may quote headers.
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined;
  const code = typeof cause?.code === "string" ? ` (${cause.code})` : "";
  return { ok: false, error: "unreachable", message: `the relay could not be reached${code}` };
}

function refusal(response: Response, fields: Fields | undefined): Failure {
  const { error, message } = fields ?? {};
  if (!isErrorCode(error) || typeof message !== "string") {
    return unexpected(response);
  }
  return { ok: false, error, message, ...about(response) };
}

function unexpected(response: Response): Failure {
  const message = `the answer with status ${response.status} is not one of the relay's`;
  return { ok: false, error: "unexpected_answer", message, ...about(response) };
}

function about(response: Response): Pick<Failure, "status" | "retryAfterSeconds" | "requestId"> {
  const requestId = response.headers.get("x-request-id");
  const after = response.headers.get("retry-after") ?? "";
  return {
    status: response.status,
    ...(/^[0-9]{1,9}$/.test(after) ? { retryAfterSeconds: Number(after) } : {}),
    ...(requestId === null ? {} : { requestId }),
  };
}

function readObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

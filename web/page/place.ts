/**
 * This tab's place in a session, and how it survives: from the link's fragment, which is removed from the address bar
 * at once, or from `sessionStorage`, where a reload finds it again until the session ends.
 *
 * Kept are the ticket and the secret. What a page load draws for itself (its connection id, the r of its sealing) is
 * in the client's memory alone, so that a load that is gone can't be continued by anybody.
 */

import { fromBase64Url } from "@sovereignfs/relay-client";

const KEY = "sovereign-playground";
const SECRET_BYTES = 32;
/** The last of a link: who cuts it short cuts this. */
const WHOLE_TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** A place in a session. */
export interface Place {
  readonly slot: "a" | "b";
  readonly sessionId: string;
  readonly ticket: string;
  /** The end-to-end secret, base64url. */
  readonly secret: string;
  readonly expiresAt: string;
  /** The other side's ticket, until the other side has come. */
  readonly invitation?: string;
}

/** The place that this load of the page takes up, if any. A link that was cut short gives none. */
export function findPlace(): Place | "incomplete" | undefined {
  const { hash } = location;
  if (hash === "") {
    return kept();
  }
  history.replaceState(null, "", location.pathname);
  const linked = readLink(hash);
  if (linked === undefined) {
    return "incomplete";
  }
  keep(linked);
  return linked;
}

/** Remembers the place for a reload. */
export function keep(place: Place): void {
  sessionStorage.setItem(KEY, JSON.stringify(place));
}

/** Forgets it. */
export function forget(): void {
  sessionStorage.removeItem(KEY);
}

/** The link for the other side. Browsers keep what is behind the # to themselves. */
export function link({ sessionId, invitation, secret, expiresAt }: Place): string | undefined {
  if (invitation === undefined) {
    return undefined;
  }
  return `${location.origin}/#${new URLSearchParams({ sessionId, ticket: invitation, secret, expiresAt }).toString()}`;
}

/** What is behind the # of a link; `undefined` when some of it is missing. */
export function readLink(hash: string): Place | undefined {
  const fragment = new URLSearchParams(hash.slice(1));
  const field = (name: string): string => fragment.get(name) ?? "";
  const [sessionId, ticket, secret, expiresAt] = [field("sessionId"), field("ticket"), field("secret"), field("expiresAt")];
  const isWhole = sessionId !== "" && ticket !== "" && fromBase64Url(secret)?.length === SECRET_BYTES && WHOLE_TIME.test(expiresAt);
  return isWhole ? { slot: "b", sessionId, ticket, secret, expiresAt } : undefined;
}

function kept(): Place | undefined {
  const text = sessionStorage.getItem(KEY);
  return text === null ? undefined : (JSON.parse(text) as Place);
}

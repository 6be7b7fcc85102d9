/**
 * This tab's place in a session, and how it survives: from the link's fragment, which is removed from the address bar
 * at once, or from `sessionStorage`, where a reload finds it again until the session ends.
 *
 * Kept are the ticket and the secret. What a page load draws for itself (its connection id, the r of its sealing) is
 * in the client's memory alone, so that a load that is gone can't be continued by anybody.
 */

const KEY = "sovereign-playground";

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

/** The place that this load of the page takes up, if any. */
export function findPlace(): Place | undefined {
  const linked = fromFragment();
  if (linked !== undefined) {
    keep(linked);
  }
  return linked ?? kept();
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

function fromFragment(): Place | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (location.hash !== "") {
    history.replaceState(null, "", location.pathname);
  }
  const [sessionId, ticket] = [fragment.get("sessionId"), fragment.get("ticket")];
  const [secret, expiresAt] = [fragment.get("secret"), fragment.get("expiresAt")];
  if (sessionId === null || ticket === null || secret === null || expiresAt === null) {
    return undefined;
  }
  return { slot: "b", sessionId, ticket, secret, expiresAt };
}

function kept(): Place | undefined {
  const text = sessionStorage.getItem(KEY);
  return text === null ? undefined : (JSON.parse(text) as Place);
}

/** The playground's listener: it makes sessions in the name of an instance, and disturbs the wires when asked. */

/** What the relay answered to the instance. */
export interface MadeSession {
  readonly sessionId: string;
  readonly expiresAt: string;
  readonly tickets: { readonly a: string; readonly b: string };
}

/** What each side dials. */
export type Wires = Readonly<Record<"a" | "b", string>>;

/** A session with a ticket for each side. */
export async function makeSession(): Promise<MadeSession> {
  const response = await fetch("/sessions", { method: "POST" });
  const body = (await response.json()) as MadeSession & { readonly message?: string };
  if (!response.ok) {
    throw new Error(body.message ?? `the playground answered ${response.status}`);
  }
  return body;
}

/** Ends a session at the relay, for both sides. */
export async function endSession(sessionId: string): Promise<void> {
  const response = await fetch(`/sessions/${sessionId}/end`, { method: "POST" });
  if (!response.ok) {
    throw new Error(`the playground answered ${response.status}`);
  }
}

/** Where the wires are. */
export async function findWires(): Promise<Wires> {
  return (await (await fetch("/wires")).json()) as Wires;
}

/** Cuts what this side has open. */
export async function cutWire(slot: "a" | "b"): Promise<void> {
  await fetch(`/wires/${slot}/cut`, { method: "POST" });
}

/** Cuts everything, and lets nobody in for five seconds. */
export async function refuseAll(): Promise<void> {
  await fetch("/wires/refuse", { method: "POST" });
}

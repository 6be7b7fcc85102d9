/**
 * The playground's page: two tabs, one session. `sovereign-relay playground` serves it.
 *
 *     no place  -> the start view -> a session is made -> place a
 *     the link  -> place b                                 reload -> the same place
 *     place     -> Scene: session, connection, views
 */

import { newSecret, toBase64Url } from "@sovereignfs/relay-client";
import { findWires, makeSession } from "./backend.js";
import { announce, byId, byKind, onPress } from "./dom.js";
import { findPlace, keep, type Place } from "./place.js";
import { Scene } from "./scene.js";

async function begin(): Promise<void> {
  const place = findPlace();
  // A link that is pasted into this tab changes only the fragment: begin anew with it.
  addEventListener("hashchange", () => {
    location.reload();
  });
  if (place === undefined || place === "incomplete") {
    byId("welcome").hidden = false;
    byId("trouble").textContent =
      place === undefined ? "" : "This link is incomplete: copy all of it, or start a session of your own.";
    onPress("start", () => {
      void start();
    });
  } else {
    await enter(place);
  }
}

async function start(): Promise<void> {
  const button = byKind("start", HTMLButtonElement);
  button.disabled = true;
  byId("trouble").textContent = "";
  try {
    const { sessionId, expiresAt, tickets } = await makeSession();
    const secret = toBase64Url(newSecret());
    const place: Place = { slot: "a", sessionId, expiresAt, secret, ticket: tickets.a, invitation: tickets.b };
    keep(place);
    await enter(place);
    byId("open-link").focus();
    announce("Session made. Open its link in a second tab.");
  } catch (error) {
    byId("trouble").textContent = `No session: ${error instanceof Error ? error.message : "unknown trouble"}`;
  } finally {
    button.disabled = false;
  }
}

async function enter(place: Place): Promise<void> {
  const wires = await findWires();
  byId("welcome").hidden = true;
  byId("session").hidden = false;
  new Scene(place, wires[place.slot]).start();
}

void begin();

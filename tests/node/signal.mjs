// A page's end of a signaling session, in Node: answers an offer, gives notes back, and waits until the other side has
// left. Run by tests/it/signaling/clients.rs with the TypeScript client as it is shipped:
//
//   INVITATION='{"url", "sessionId", "ticket", "secret"}' node --experimental-websocket tests/node/signal.mjs
//
// Prints one JSON object.
import { Session, fromBase64Url } from "../../web/dist/sovereign-relay.js";

const { url, sessionId, ticket, secret } = JSON.parse(process.env.INVITATION);
const session = new Session({ url, sessionId, ticket, secret: fromBase64Url(secret) });
const report = { slot: undefined, heard: [], violations: [], peer: undefined };

session.on("violation", ({ reason }) => report.violations.push(reason));
session.on("peer", ({ state }) => {
  report.peer = state;
  if (state === "left") {
    report.slot = session.slot;
    session.close("direct");
  }
});
session.on("message", ({ kind, negotiation, value }) => {
  report.heard.push(kind);
  if (kind === "offer") {
    void session.send({ kind: "answer", negotiation, value: { type: "answer", sdp: value.sdp } });
  } else if (kind === "note") {
    void session.send({ kind, negotiation, value });
  }
});
session.on("closed", () => console.log(JSON.stringify(report)));
session.start();

import { Session, connect, fromBase64Url, moodOf } from "@sovereignfs/relay-client";

/** What a page got out of band: in a sealed push, or in the fragment of a link. */
export interface Invitation {
  url: string;
  sessionId: string;
  ticket: string;
  secret: string;
}

/** Both pages run this. Gives a channel, and another one whenever the peer reloads its page. */
export function chat(invitation: Invitation, use: (channel: RTCDataChannel) => void): Session {
  const secret = fromBase64Url(invitation.secret);
  if (secret === undefined) {
    throw new TypeError("the link is incomplete");
  }
  const session = new Session({ ...invitation, secret });

  const connection = connect(() => {
    const peerConnection = new RTCPeerConnection();
    use(peerConnection.createDataChannel("chat", { negotiated: true, id: 0 }));
    peerConnection.addEventListener("connectionstatechange", () => {
      if (peerConnection.connectionState === "connected") {
        void moodOf(peerConnection).then((mood) => {
          console.log("connected", mood);
        });
      }
    });
    return peerConnection;
  }, session);

  session.on("peer", ({ state }) => {
    console.log("the peer is", state);
  });
  session.on("violation", ({ reason }) => {
    console.warn("the relay misbehaves:", reason);
  });
  session.on("closed", ({ reason }) => {
    console.log("signaling is over:", reason);
  });
  connection.on("problem", ({ reason }) => {
    console.warn("negotiation:", reason);
  });
  return session;
}

import { Instance, newSecret, seal, toBase64Url } from "@sovereignfs/relay-client";

/** Makes a session and sends the other side its half in a push that only its device can open. */
export async function call(
  relay: Instance,
  device: { token: string; publicKey: string; registeredAt: Date },
): Promise<{ url: string; sessionId: string; ticket: string; secret: string } | undefined> {
  const session = await relay.createSession({ ttlSeconds: 120 });
  if (!session.ok) {
    console.error(session.error, session.retryAfterSeconds);
    return undefined;
  }
  const { url, sessionId, tickets } = session.value;
  const secret = toBase64Url(newSecret());
  const encryptedPayload = await seal({ url, sessionId, ticket: tickets.b, secret }, device.publicKey);
  const push = await relay.push({ deviceToken: device.token, platform: "android", encryptedPayload, ttlSeconds: 60 });
  if (push.ok && push.value.result === "invalid_token" && device.registeredAt < new Date(push.value.invalidSince)) {
    console.log("the device is gone: delete its registration");
  }
  return { url, sessionId, ticket: tickets.a, secret };
}

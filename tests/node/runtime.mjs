// What the deployed Sovereign runtime does, with nothing but Node: enroll, seal, push. Run by tests/it/runtime.rs,
// or by hand against any relay:
//
//   RELAY_URL=http://127.0.0.1:4002 DEVICE_TOKEN=... DEVICE_PUBLIC_KEY=... node tests/node/runtime.mjs
//
// With ENROLLMENT_SECRET it also makes instance keys by hand and says which of them the relay accepts.
// Prints one JSON object.
import crypto from "node:crypto";

const { RELAY_URL, DEVICE_TOKEN, DEVICE_PUBLIC_KEY, ENROLLMENT_SECRET, PLATFORM = "ios" } = process.env;
// Before it enrolls: each try would leave an instance.
const missing = ["RELAY_URL", "DEVICE_TOKEN", "DEVICE_PUBLIC_KEY"].filter((name) => !process.env[name]);
if (missing.length > 0) {
  console.error(`set ${missing.join(", ")}`);
  process.exit(2);
}

/** base64( ephemeral public key | IV | tag | ciphertext ), as the runtime makes it. */
function seal(devicePublicKeyBase64, notification) {
  const ephemeral = crypto.createECDH("prime256v1");
  const ephemeralPublicKey = ephemeral.generateKeys();
  const shared = ephemeral.computeSecret(Buffer.from(devicePublicKeyBase64, "base64"));
  const key = Buffer.from(crypto.hkdfSync("sha256", shared, Buffer.alloc(0), "sovereign-push-v1", 32));
  const iv = crypto.randomBytes(12);
  const cipher = crypto.createCipheriv("aes-256-gcm", key, iv);
  const ciphertext = Buffer.concat([cipher.update(JSON.stringify(notification), "utf8"), cipher.final()]);
  return Buffer.concat([ephemeralPublicKey, iv, cipher.getAuthTag(), ciphertext]).toString("base64");
}

async function push(instanceKey) {
  const response = await fetch(`${RELAY_URL}/v1/push`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      deviceToken: DEVICE_TOKEN,
      platform: PLATFORM,
      encryptedPayload: seal(DEVICE_PUBLIC_KEY, { title: "Hello", body: "from the runtime" }),
      instanceKey,
    }),
  });
  return { status: response.status, body: await response.json() };
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** An instance key made by hand, in the documented format unless told otherwise. */
function makeKey({ alg = "HS256", claims = {}, sign } = {}) {
  const body = { instanceId: crypto.randomUUID(), iat: Math.floor(Date.now() / 1000), ...claims };
  const signed = `${encode({ alg, typ: "JWT" })}.${encode(body)}`;
  return `${signed}.${sign(signed)}`;
}

const hmac = (hash) => (text) => crypto.createHmac(hash, ENROLLMENT_SECRET).update(text).digest("base64url");

function handMadeKeys() {
  const { privateKey } = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rsa = (text) => crypto.createSign("sha256").update(text).sign(privateKey).toString("base64url");
  const good = makeKey({ sign: hmac("sha256") });
  const [header, claims, signature] = good.split(".");
  const otherClaims = encode({ instanceId: crypto.randomUUID(), iat: 1 });
  return {
    good,
    tamperedClaims: `${header}.${otherClaims}.${signature}`,
    tamperedSignature: `${header}.${claims}.${Buffer.alloc(32).toString("base64url")}`,
    withoutSignature: `${header}.${claims}.`,
    algNone: makeKey({ alg: "none", sign: () => "" }),
    algNoneSigned: makeKey({ alg: "none", sign: hmac("sha256") }),
    hs512: makeKey({ alg: "HS512", sign: hmac("sha512") }),
    rs256: makeKey({ alg: "RS256", sign: rsa }),
    notAUuid: makeKey({ claims: { instanceId: "admin" }, sign: hmac("sha256") }),
  };
}

const enrolled = await fetch(`${RELAY_URL}/v1/enroll`, { method: "POST" });
const { instanceId, instanceKey } = await enrolled.json();
const report = { enrollStatus: enrolled.status, instanceId, push: await push(instanceKey), handMade: {} };
if (ENROLLMENT_SECRET) {
  for (const [name, key] of Object.entries(handMadeKeys())) {
    report.handMade[name] = await push(key);
  }
}
console.log(JSON.stringify(report));

// The sealed payload with nothing but Node's `crypto`. Driven by tests/it/interoperability.rs; the protocol is in README.md.
import crypto from "node:crypto";
import { createInterface } from "node:readline";

const CURVE = "prime256v1";
const POINT = 65;
const IV = 12;
const TAG = 16;
const PADDED = [256, 512, 1024, 1792, 2560];
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function generate() {
  const key = crypto.createECDH(CURVE);
  const publicKey = key.generateKeys("base64");
  // Node drops leading zeros of the scalar.
  const scalar = Buffer.concat([Buffer.alloc(32), key.getPrivateKey()]).subarray(-32);
  return `${scalar.toString("base64")} ${publicKey}`;
}

function seal(publicKey, text) {
  const ephemeral = crypto.createECDH(CURVE);
  const point = ephemeral.generateKeys();
  const key = derive(ephemeral.computeSecret(Buffer.from(publicKey, "base64")));
  const iv = crypto.randomBytes(IV);
  const cipher = crypto.createCipheriv("aes-256-gcm", key, iv);
  const ciphertext = Buffer.concat([cipher.update(pad(Buffer.from(text, "base64"))), cipher.final()]);
  return Buffer.concat([point, iv, cipher.getAuthTag(), ciphertext]).toString("base64");
}

function open(scalar, _publicKey, sealed) {
  // Node decodes anything; a payload that isn't base64 is refused as such.
  if (!BASE64.test(sealed)) {
    throw new Error("not base64");
  }
  const bytes = Buffer.from(sealed, "base64");
  if (bytes.length < POINT + IV + TAG || bytes[0] !== 4) {
    throw new Error("not a payload");
  }
  const device = crypto.createECDH(CURVE);
  device.setPrivateKey(Buffer.from(scalar, "base64"));
  // Throws for a point that is not on the curve.
  const key = derive(device.computeSecret(bytes.subarray(0, POINT)));
  const decipher = crypto.createDecipheriv("aes-256-gcm", key, bytes.subarray(POINT, POINT + IV));
  decipher.setAuthTag(bytes.subarray(POINT + IV, POINT + IV + TAG));
  return Buffer.concat([decipher.update(bytes.subarray(POINT + IV + TAG)), decipher.final()]).toString("base64");
}

function derive(shared) {
  return Buffer.from(crypto.hkdfSync("sha256", shared, Buffer.alloc(0), "sovereign-push-v1", 32));
}

function pad(json) {
  const length = PADDED.find((padded) => json.length <= padded);
  return Buffer.concat([json, Buffer.alloc(length - json.length, " ")]);
}

const calls = { generate, seal, open };
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...fields] = line.split(" ");
  let answer;
  try {
    answer = `ok ${calls[name](...fields)}`;
  } catch {
    answer = "refused";
  }
  console.log(answer);
}

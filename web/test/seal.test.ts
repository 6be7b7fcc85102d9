import assert from "node:assert/strict";
import { createECDH } from "node:crypto";
import { test } from "node:test";
import { fromBase64, toBase64, toBase64Url, utf8 } from "../src/bytes.js";
import {
  OpenError,
  PADDED_BYTES,
  SealError,
  exportDevicePublicKey,
  generateDeviceKey,
  importDeviceKey,
  open,
  seal,
  sealWith,
} from "../src/seal.js";
import { fromHex, vectors } from "./support/vectors.js";

interface Vectors {
  open: {
    name: string;
    devicePrivateKeyHex: string;
    devicePublicKeyBase64: string;
    ephemeralPrivateKeyHex: string;
    ivHex: string;
    plaintextUtf8: string;
    encryptedPayloadBase64: string;
  }[];
  reject: { name: string; devicePrivateKeyHex: string; encryptedPayload: string }[];
}

const known = vectors("sealed-payload.json") as Vectors;

const FAULTS: Record<string, string> = {
  "tag flipped": "not_authentic",
  "ciphertext flipped": "not_authentic",
  "iv flipped": "not_authentic",
  "ephemeral key not on the curve": "not_a_point",
  "compressed-point prefix": "not_a_point",
  "truncated inside the header": "too_short",
  empty: "too_short",
  "not base64": "not_base64",
};

for (const vector of known.open) {
  test(`the vector "${vector.name}" is opened`, async () => {
    const key = await importDeviceKey(fromHex(vector.devicePrivateKeyHex), vector.devicePublicKeyBase64);
    assert.equal(await open(vector.encryptedPayloadBase64, key), vector.plaintextUtf8);
  });

  test(`the vector "${vector.name}" is made, byte for byte`, async () => {
    const ephemeral = await keyPair(vector.ephemeralPrivateKeyHex);
    const made = await sealWith(
      utf8(vector.plaintextUtf8),
      vector.devicePublicKeyBase64,
      ephemeral,
      fromHex(vector.ivHex),
    );
    assert.equal(made, vector.encryptedPayloadBase64);
  });
}

for (const vector of known.reject) {
  test(`the wrong vector "${vector.name}" is refused`, async () => {
    const { privateKey } = await keyPair(vector.devicePrivateKeyHex);
    await assert.rejects(open(vector.encryptedPayload, privateKey), { code: FAULTS[vector.name] });
  });
}

test("what is sealed is opened, padded to one of the lengths", async () => {
  const device = await generateDeviceKey();
  const publicKey = await exportDevicePublicKey(device.publicKey);
  for (const length of [0, 200, 300, 1000, 1700, 2500]) {
    const notification = { title: "x".repeat(length) };
    const text = await open(await seal(notification, publicKey), device.privateKey);
    assert.deepEqual(JSON.parse(text), notification);
    assert.ok(PADDED_BYTES.includes(utf8(text).length));
  }
});

test("a notification longer than the last length is refused, one of exactly that length is not", async () => {
  const device = await generateDeviceKey();
  const publicKey = await exportDevicePublicKey(device.publicKey);
  const exactly = "x".repeat(2560 - 2);
  assert.equal(await open(await seal(exactly, publicKey), device.privateKey), JSON.stringify(exactly));
  await assert.rejects(seal(`${exactly}x`, publicKey), { code: "too_large" });
});

test("what JSON can't hold is refused without quoting it", async () => {
  const device = await generateDeviceKey();
  const publicKey = await exportDevicePublicKey(device.publicKey);
  const loop: Record<string, unknown> = { secret: "hunter2" };
  loop["self"] = loop;
  for (const value of [undefined, () => 1, loop, 1n]) {
    await assert.rejects(seal(value, publicKey), (error) => {
      assert.ok(error instanceof SealError);
      assert.equal(error.code, "not_json");
      assert.doesNotMatch(`${error.message}${String(error.cause)}`, /hunter2/);
      return true;
    });
  }
});

test("a device key that is no point on the curve is refused", async () => {
  for (const key of ["", "AAAA", "***", toBase64(new Uint8Array(65).fill(4))]) {
    await assert.rejects(seal({}, key), { code: "not_a_device_key" });
  }
});

test("every single flipped bit is noticed", async () => {
  const device = await generateDeviceKey();
  const sealed = await seal({ title: "t" }, await exportDevicePublicKey(device.publicKey));
  const bytes = fromBase64(sealed)!;
  for (let at = 0; at < bytes.length; at += 1) {
    const edited = Uint8Array.from(bytes);
    edited[at]! ^= 1 << (at % 8);
    await assert.rejects(open(toBase64(edited), device.privateKey), OpenError);
  }
});

test("another device opens nothing", async () => {
  const [device, other] = [await generateDeviceKey(), await generateDeviceKey()];
  const sealed = await seal({}, await exportDevicePublicKey(device.publicKey));
  await assert.rejects(open(sealed, other.privateKey), { code: "not_authentic" });
});

test("a second text for the same bytes is not base64", () => {
  assert.ok(fromBase64("AA=="));
  for (const text of ["AB==", "AA", "AA=", "AA==\n", " AA==", "AA==AA==", "A-__"]) {
    assert.equal(fromBase64(text), undefined, text);
  }
});

async function keyPair(scalarHex: string): Promise<CryptoKeyPair> {
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(scalarHex, "hex");
  const whole = ecdh.getPublicKey();
  const [x, y] = [toBase64Url(whole.subarray(1, 33)), toBase64Url(whole.subarray(33))];
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const jwk = { kty: "EC", crv: "P-256", x, y };
  return {
    privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d: toBase64Url(fromHex(scalarHex)) }, curve, false, [
      "deriveBits",
    ]),
    publicKey: await crypto.subtle.importKey("jwk", jwk, curve, true, []),
  };
}

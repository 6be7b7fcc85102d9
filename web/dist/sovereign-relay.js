// Sovereign Relay, web client. AGPL-3.0-or-later. Built from web/src by `npm run build`: edit there.

// src/bytes.ts
var STANDARD = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
var URL_SAFE = /^[A-Za-z0-9_-]*$/;
var utf8Encoder = new TextEncoder();
var utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
function utf8(text) {
  return utf8Encoder.encode(text);
}
function fromUtf8(bytes) {
  try {
    return utf8Decoder.decode(bytes);
  } catch {
    return void 0;
  }
}
function toBase64(bytes) {
  let binary = "";
  for (const byte of bytes) {
    binary += String.fromCharCode(byte);
  }
  return btoa(binary);
}
function fromBase64(text) {
  if (!STANDARD.test(text)) {
    return void 0;
  }
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return toBase64(bytes) === text ? bytes : void 0;
}
function toBase64Url(bytes) {
  return toBase64(bytes).replace(/[+]/g, "-").replace(/[/]/g, "_").replace(/=+$/, "");
}
function fromBase64Url(text) {
  if (!URL_SAFE.test(text)) {
    return void 0;
  }
  const standard = text.replace(/-/g, "+").replace(/_/g, "/");
  return fromBase64(standard + "=".repeat((4 - standard.length % 4) % 4));
}
function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
function randomBytes(length) {
  return crypto.getRandomValues(new Uint8Array(length));
}
function padTo(lengths, text) {
  const bytes = utf8(text);
  const target = lengths.find((length) => bytes.length <= length);
  return target === void 0 ? void 0 : concat(bytes, utf8(" ".repeat(target - bytes.length)));
}

// src/cipher.ts
var TAG_BYTES = 16;
async function hkdf(secret, salt, info) {
  const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const parameters = { name: "HKDF", hash: "SHA-256", salt, info };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, 256));
}
async function aesKey(bytes) {
  return crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
}
async function encrypt(key, nonce, text, associated = new Uint8Array()) {
  const parameters = { name: "AES-GCM", iv: nonce, additionalData: associated };
  return new Uint8Array(await crypto.subtle.encrypt(parameters, key, text));
}
async function decrypt(key, nonce, ciphertext, associated = new Uint8Array()) {
  const parameters = { name: "AES-GCM", iv: nonce, additionalData: associated };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(parameters, key, ciphertext));
  } catch {
    return void 0;
  }
}
function counterNonce(count) {
  const low = new Uint8Array(8);
  new DataView(low.buffer).setBigUint64(0, BigInt(count));
  return concat(new Uint8Array(4), low);
}

// src/seal.ts
var POINT_BYTES = 65;
var SCALAR_BYTES = 32;
var IV_BYTES = 12;
var UNCOMPRESSED = 4;
var INFO = utf8("sovereign-push-v1");
var CURVE = { name: "ECDH", namedCurve: "P-256" };
var PADDED_BYTES = [256, 512, 1024, 1792, 2560];
var SealError = class extends Error {
  name = "SealError";
  code;
  constructor(code) {
    super(SEAL_SENTENCES[code]);
    this.code = code;
  }
};
var OpenError = class extends Error {
  name = "OpenError";
  code;
  constructor(code) {
    super(OPEN_SENTENCES[code]);
    this.code = code;
  }
};
var SEAL_SENTENCES = {
  too_large: "the notification is longer than 2560 bytes of JSON",
  not_json: "the notification can't be written as JSON",
  not_a_device_key: "the device key must be base64 of an uncompressed P-256 point"
};
var OPEN_SENTENCES = {
  not_base64: "the payload is not base64",
  too_short: "the payload is too short",
  not_a_point: "the payload's key is not an uncompressed P-256 point",
  not_authentic: "the payload was made for another device, or changed on the way",
  not_utf8: "the payload is authentic, but not UTF-8"
};
async function seal(notification, devicePublicKey) {
  const padded = padTo(PADDED_BYTES, asJson(notification));
  if (padded === void 0) {
    throw new SealError("too_large");
  }
  const ephemeral = await crypto.subtle.generateKey(CURVE, true, ["deriveBits"]);
  return sealWith(padded, devicePublicKey, ephemeral, randomBytes(IV_BYTES));
}
async function open(payload, devicePrivateKey) {
  const bytes = fromBase64(payload);
  if (bytes === void 0) {
    throw new OpenError("not_base64");
  }
  if (bytes.length < POINT_BYTES + IV_BYTES + TAG_BYTES) {
    throw new OpenError("too_short");
  }
  const iv = bytes.slice(POINT_BYTES, POINT_BYTES + IV_BYTES);
  const tag = bytes.slice(POINT_BYTES + IV_BYTES, POINT_BYTES + IV_BYTES + TAG_BYTES);
  const ciphertext = bytes.slice(POINT_BYTES + IV_BYTES + TAG_BYTES);
  const ephemeral = await point(bytes.slice(0, POINT_BYTES));
  if (ephemeral === void 0) {
    throw new OpenError("not_a_point");
  }
  const plaintext = await decrypt(await sharedKey(devicePrivateKey, ephemeral), iv, concat(ciphertext, tag));
  if (plaintext === void 0) {
    throw new OpenError("not_authentic");
  }
  const text = fromUtf8(plaintext);
  if (text === void 0) {
    throw new OpenError("not_utf8");
  }
  return text;
}
async function generateDeviceKey(extractable = false) {
  return crypto.subtle.generateKey(CURVE, extractable, ["deriveBits"]);
}
async function exportDevicePublicKey(publicKey) {
  return toBase64(new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)));
}
async function importDeviceKey(scalar, publicKey) {
  const whole = fromBase64(publicKey);
  if (whole?.length !== POINT_BYTES || whole[0] !== UNCOMPRESSED || scalar.length !== SCALAR_BYTES) {
    throw new SealError("not_a_device_key");
  }
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: toBase64Url(scalar),
    x: toBase64Url(whole.subarray(1, 1 + SCALAR_BYTES)),
    y: toBase64Url(whole.subarray(1 + SCALAR_BYTES))
  };
  try {
    return await crypto.subtle.importKey("jwk", jwk, CURVE, false, ["deriveBits"]);
  } catch {
    throw new SealError("not_a_device_key");
  }
}
async function sealWith(plaintext, devicePublicKey, ephemeral, iv) {
  const bytes = fromBase64(devicePublicKey);
  const device = bytes === void 0 ? void 0 : await point(bytes);
  if (device === void 0) {
    throw new SealError("not_a_device_key");
  }
  const sealed = await encrypt(await sharedKey(ephemeral.privateKey, device), iv, plaintext);
  const ephemeralPoint = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const tag = sealed.subarray(sealed.length - TAG_BYTES);
  return toBase64(concat(ephemeralPoint, iv, tag, sealed.subarray(0, sealed.length - TAG_BYTES)));
}
async function sharedKey(ours, theirs) {
  const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, ours, 256);
  return aesKey(await hkdf(new Uint8Array(shared), new Uint8Array(), INFO));
}
async function point(bytes) {
  if (bytes.length !== POINT_BYTES || bytes[0] !== UNCOMPRESSED) {
    return void 0;
  }
  try {
    return await crypto.subtle.importKey("raw", bytes, CURVE, true, []);
  } catch {
    return void 0;
  }
}
function asJson(value) {
  try {
    const text = JSON.stringify(value);
    if (text !== void 0) {
      return text;
    }
  } catch {
  }
  throw new SealError("not_json");
}

// src/signal-seal.ts
var SECRET_BYTES = 32;
var LOAD_BYTES = 16;
var PADDED_BYTES2 = [256, 512, 1024, 2048, 4096, 8192, 16384];
var LOADS_MAX = 256;
var HEAD_CHARS_MAX = "e1.".length + 22 + ".9007199254740991.".length;
var TAG_BYTES2 = 16;
var FRAME = /^e1\.([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,15})\.([A-Za-z0-9_-]+)$/;
function newSecret() {
  return randomBytes(SECRET_BYTES);
}
function sealedLength(text) {
  const length = utf8(text).length;
  const padded = PADDED_BYTES2.find((padded2) => length <= padded2);
  return padded === void 0 ? void 0 : HEAD_CHARS_MAX + Math.ceil((padded + TAG_BYTES2) * 4 / 3);
}
var SignalSealer = class {
  #context;
  #load;
  #key;
  #count = 0;
  /** `load` is for the vectors; otherwise it is drawn here and never stored. */
  constructor(secret, slot, load = randomBytes(LOAD_BYTES)) {
    this.#context = new Context(secret, slot);
    this.#load = Uint8Array.from(load);
    this.#key = this.#context.key(this.#load);
  }
  /** Seals the next message; `undefined` when it is longer than 16 KiB. Calls count in the order they are made. */
  async seal(text) {
    const padded = padTo(PADDED_BYTES2, text);
    return padded === void 0 ? void 0 : this.sealExactly(padded);
  }
  /** @internal Without padding; for the vectors. */
  async sealExactly(bytes) {
    this.#count += 1;
    const count = this.#count;
    const load = toBase64Url(this.#load);
    const associated = this.#context.associated(load, count);
    const sealed = await encrypt(await this.#key, counterNonce(count), bytes, associated);
    return `e1.${load}.${count}.${toBase64Url(sealed)}`;
  }
};
var SignalOpener = class {
  #context;
  #retired = /* @__PURE__ */ new Set();
  #current;
  constructor(secret, ownSlot) {
    this.#context = new Context(secret, ownSlot === "a" ? "b" : "a");
  }
  /** Opens the next frame. */
  async open(frame) {
    const parsed = parse(frame);
    if (parsed === void 0) {
      return reject("not_sealed");
    }
    const current = this.#current;
    if (this.#retired.has(parsed.load)) {
      return reject("retired_load");
    }
    if (current?.load === parsed.load && parsed.count <= current.count) {
      return reject("replayed");
    }
    const key = current?.load === parsed.load ? current.key : await this.#context.key(parsed.loadBytes);
    const associated = this.#context.associated(parsed.load, parsed.count);
    const bytes = await decrypt(key, counterNonce(parsed.count), parsed.ciphertext, associated);
    const text = bytes === void 0 ? void 0 : fromUtf8(bytes);
    return text === void 0 ? reject("not_authentic") : this.#accept(parsed, key, text);
  }
  #accept(parsed, key, text) {
    const current = this.#current;
    if (current?.load === parsed.load) {
      const missing2 = parsed.count - current.count - 1;
      current.count = parsed.count;
      return { ok: true, text, load: this.#retired.size + 1, missing: missing2 };
    }
    if (this.#retired.size >= LOADS_MAX) {
      return reject("too_many_loads");
    }
    const missing = current === void 0 ? 0 : parsed.count - 1;
    if (current !== void 0) {
      this.#retired.add(current.load);
    }
    this.#current = { load: parsed.load, key, count: parsed.count };
    return { ok: true, text, load: this.#retired.size + 1, missing };
  }
};
var Context = class {
  #secret;
  #sessionId;
  #slot;
  constructor({ secret, sessionId }, senderSlot) {
    if (secret.length !== SECRET_BYTES) {
      throw new RangeError("the end-to-end secret must have 32 bytes");
    }
    this.#secret = Uint8Array.from(secret);
    this.#sessionId = sessionId;
    this.#slot = senderSlot;
  }
  async key(load) {
    const salt = concat(utf8(this.#sessionId), load);
    return aesKey(await hkdf(this.#secret, salt, utf8(`sov1|${this.#slot}`)));
  }
  associated(load, count) {
    return utf8(`${this.#sessionId}|${this.#slot}|${load}|${count}`);
  }
};
function parse(frame) {
  const [, load, digits, body] = FRAME.exec(frame) ?? [];
  if (load === void 0 || digits === void 0 || body === void 0) {
    return void 0;
  }
  const [loadBytes, ciphertext, count] = [fromBase64Url(load), fromBase64Url(body), Number(digits)];
  if (loadBytes === void 0 || ciphertext === void 0 || !Number.isSafeInteger(count)) {
    return void 0;
  }
  return { load, loadBytes, count, ciphertext };
}
function reject(rejection) {
  return { ok: false, rejection };
}

// src/rendezvous.ts
var SECRET_BYTES_MIN = 16;
var RENDEZVOUS_INFO = utf8("sov1|rendezvous");
var SECRET_INFO = utf8("sov1|k");
var NO_SALT = new Uint8Array();
async function deriveRendezvous(sharedSecret) {
  if (sharedSecret.length < SECRET_BYTES_MIN) {
    throw new RangeError("the shared secret must have 16 bytes or more");
  }
  const secret = Uint8Array.from(sharedSecret);
  return {
    rendezvous: toBase64Url(await hkdf(secret, NO_SALT, RENDEZVOUS_INFO)),
    secret: await hkdf(secret, NO_SALT, SECRET_INFO)
  };
}

// src/backoff.ts
var FIRST_CAP_MS = 500;
var CAP_MS = 15e3;
var BUSY_MS = 5e3;
var GOOD_MS = 5e3;
var Backoff = class {
  #random;
  #attempt = 0;
  constructor(random) {
    this.#random = random;
  }
  /** A connection ended after this long. */
  lived(forMs) {
    if (forMs >= GOOD_MS) {
      this.#attempt = 0;
    }
  }
  /** The next delay. */
  next(retry) {
    const cap = Math.min(CAP_MS, FIRST_CAP_MS * 2 ** this.#attempt);
    this.#attempt += 1;
    const jitter = Math.floor(this.#random() * cap);
    return retry === "busy" ? BUSY_MS + jitter : jitter;
  }
};

// src/close-codes.ts
var CLOSE = {
  normal: 1e3,
  protocolError: 4400,
  outOfStep: 4500,
  noWelcome: 4508,
  heartbeatsMissed: 4512
};
var FINAL = /* @__PURE__ */ new Map([
  [1e3, "done"],
  [1002, "protocol_error"],
  [1003, "protocol_error"],
  [1007, "protocol_error"],
  [1009, "protocol_error"],
  [4400, "protocol_error"],
  [4401, "bad_ticket"],
  [4403, "revoked"],
  [4404, "no_session"],
  [4409, "replaced"],
  [4410, "over"],
  [4413, "total_exceeded"],
  [4426, "version"],
  [4429, "abuse"]
]);
function meaningOf(code) {
  const final = FINAL.get(code);
  if (final !== void 0) {
    return { final };
  }
  if (code === 1012) {
    return { retry: "moved" };
  }
  if (code === 1013) {
    return { retry: "busy" };
  }
  return code >= 4400 && code < 4500 ? { final: "other" } : { retry: "backoff" };
}

// src/effects.ts
var Effects = class {
  #list = [];
  dial(dial) {
    this.#list.push({ do: "dial", dial });
  }
  transmit(dial, frame) {
    this.#list.push({ do: "transmit", dial, frame });
  }
  hangUp(dial, code) {
    this.#list.push({ do: "hang-up", dial, code });
  }
  emit(event) {
    this.#list.push({ do: "emit", event });
  }
  deliver(delivery) {
    this.#list.push({ do: "deliver", ...delivery });
  }
  take() {
    const list = this.#list;
    this.#list = [];
    return list;
  }
};

// src/frames.ts
var SUBPROTOCOL = "sovereign.signal.v1";
var FRAME_CHARS_MAX = 1024 * 1024;
var DEFAULT_LIMITS = {
  frameBytes: 32 * 1024,
  mailboxMessages: 256,
  mailboxBytes: 512 * 1024,
  messagesPerSecond: 20,
  burst: 60
};
function writeFrame(frame) {
  return JSON.stringify(frame);
}
function readFrame(text) {
  if (typeof text !== "string" || text.length > FRAME_CHARS_MAX) {
    return "malformed";
  }
  const fields = parseObject(text);
  if (typeof fields?.["t"] !== "string") {
    return "malformed";
  }
  const read = READERS.get(fields["t"]);
  return read === void 0 ? "unknown" : read(fields) ?? "malformed";
}
var READERS = /* @__PURE__ */ new Map([
  ["welcome", readWelcome],
  ["ack", ({ n }) => isCount(n) ? { t: "ack", n } : void 0],
  ["msg", readMessage],
  ["peer", readPeer],
  ["ping", () => ({ t: "ping" })],
  ["pong", () => ({ t: "pong" })],
  ["ice", readIce],
  ["goaway", ({ inMs }) => isCount(inMs) ? { t: "goaway", inMs } : void 0],
  ["err", readRefusal]
]);
function readWelcome(fields) {
  const { gen, next, base, expiresAt } = fields;
  const place = readPlace(fields);
  const [peer, limits] = [readPresence(fields["peer"]), readLimits(fields["limits"])];
  const iceServers = readIceServers(fields["iceServers"] ?? []);
  if (place === void 0 || peer === void 0 || limits === void 0 || iceServers === void 0) {
    return void 0;
  }
  const counted = isCount(gen) && isCount(next) && next > 0 && isCount(base);
  return counted && typeof expiresAt === "string" ? { t: "welcome", ...place, gen, next, base, peer, expiresAt, limits, iceServers } : void 0;
}
function readPlace({ slot, role }) {
  if (slot === "a" && role === "impolite") {
    return { slot, role };
  }
  return slot === "b" && role === "polite" ? { slot, role } : void 0;
}
function readMessage({ seq, gen, d }) {
  const counted = isCount(seq) && seq > 0 && isCount(gen);
  return counted && typeof d === "string" ? { t: "msg", seq, gen, d } : void 0;
}
function readPeer(fields) {
  const presence = readPresence(fields);
  const seq = fields["seq"] ?? void 0;
  const sequenced = seq === void 0 || isCount(seq) && seq > 0;
  return presence !== void 0 && sequenced ? { t: "peer", ...presence, seq } : void 0;
}
function readIce({ iceServers, expiresAt }) {
  const servers = readIceServers(iceServers ?? []);
  const until = expiresAt ?? void 0;
  const wellFormed = until === void 0 || typeof until === "string";
  return servers !== void 0 && wellFormed ? { t: "ice", iceServers: servers, expiresAt: until } : void 0;
}
function readRefusal({ code, n, retryMs }) {
  const from = n ?? void 0;
  if (code !== "rate_limited" && code !== "mailbox_full" && code !== "unavailable") {
    return void 0;
  }
  const counted = (from === void 0 || isCount(from)) && isCount(retryMs);
  return counted ? { t: "err", code, n: from, retryMs } : void 0;
}
function readPresence(value) {
  if (!isObject(value)) {
    return void 0;
  }
  const state = value["state"];
  const gen = value["gen"] ?? 0;
  const known = state === "absent" || state === "online" || state === "away" || state === "left";
  return known && isCount(gen) ? { state, gen } : void 0;
}
function readLimits(value) {
  if (!isObject(value)) {
    return void 0;
  }
  const { frameBytes, mailboxMessages, mailboxBytes, messagesPerSecond, burst } = value;
  const counted = isCount(frameBytes) && isCount(mailboxMessages) && isCount(mailboxBytes);
  return counted && isCount(messagesPerSecond) && isCount(burst) ? { frameBytes, mailboxMessages, mailboxBytes, messagesPerSecond, burst } : void 0;
}
function readIceServers(value) {
  return Array.isArray(value) && value.every(isIceServer) ? value : void 0;
}
function isIceServer(value) {
  if (!isObject(value)) {
    return false;
  }
  const { urls, username, credential } = value;
  const addressed = typeof urls === "string" || Array.isArray(urls) && urls.every((url) => typeof url === "string");
  return addressed && isOptionalText(username) && isOptionalText(credential);
}
function isOptionalText(value) {
  return value === void 0 || typeof value === "string";
}
function isCount(value) {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
function parseObject(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? value : void 0;
  } catch {
    return void 0;
  }
}

// src/heartbeat.ts
var QUIET_MS = 2e4;
var PING_WAIT_MS = 1e4;
var WAKE_WAIT_MS = 4e3;
var LOOK_MS = 2e3;
var LATE_MS = 2e3;
var Heartbeat = class {
  #heardAt;
  #saidAt;
  #probe;
  constructor(now) {
    this.#heardAt = now;
    this.#saidAt = now;
  }
  get deadline() {
    return this.#probe?.lookAt ?? this.#quietSince + QUIET_MS;
  }
  /** A frame came. */
  heard(now) {
    this.#heardAt = now;
    this.#probe = void 0;
  }
  /** A frame goes out. */
  said(now) {
    this.#saidAt = now;
  }
  /** The page woke up, or the network came back: true when a ping has to go out. */
  wake(now) {
    const probe = this.#probe;
    if (probe === void 0 || sleptThrough(probe, now)) {
      this.#begin(now, WAKE_WAIT_MS);
      return true;
    }
    probe.deadline = Math.min(probe.deadline, now + WAKE_WAIT_MS);
    probe.lookAt = Math.min(probe.lookAt, probe.deadline);
    return false;
  }
  /** A timer fired. */
  tick(now) {
    const probe = this.#probe;
    if (probe === void 0) {
      return now < this.#quietSince + QUIET_MS ? "fine" : this.#begin(now, PING_WAIT_MS);
    }
    if (sleptThrough(probe, now)) {
      return this.#begin(now, probe.waitMs);
    }
    if (now >= probe.deadline) {
      return "lost";
    }
    if (now >= probe.lookAt) {
      probe.lookAt = Math.min(now + LOOK_MS, probe.deadline);
    }
    return "fine";
  }
  /** Both directions count: the relay wants to hear us, too. */
  get #quietSince() {
    return Math.min(this.#heardAt, this.#saidAt);
  }
  #begin(now, waitMs) {
    this.#probe = { waitMs, deadline: now + waitMs, lookAt: now + Math.min(LOOK_MS, waitMs) };
    return "ping";
  }
};
function sleptThrough(probe, now) {
  return now > probe.lookAt + LATE_MS;
}

// src/ice-requests.ts
var SPACING_MS = 3e4;
var IceRequests = class {
  #wanted = false;
  #nextAt = -Infinity;
  get deadline() {
    return this.#wanted ? this.#nextAt : Infinity;
  }
  want() {
    this.#wanted = true;
  }
  /** True when a request goes out now. */
  takeDue(now) {
    if (!this.#wanted || now < this.#nextAt) {
      return false;
    }
    this.#wanted = false;
    this.#nextAt = now + SPACING_MS;
    return true;
  }
};

// src/inbox.ts
var ACK_DELAY_MS = 100;
var ACK_BATCH = 32;
var CHANGES_MAX = 256;
var MAILBOX_MESSAGES_MAX = 65536;
var Inbox = class {
  #started = false;
  #received = 0;
  #processed = 0;
  #acknowledged = 0;
  /** Where the relay is on this connection. */
  #at = 0;
  #ackAt = Infinity;
  #generation = 0;
  #unprocessedMax = CHANGES_MAX;
  /** When the next acknowledgement is due. */
  get deadline() {
    return this.#ackAt;
  }
  /** For the hello of a new connection: the highest seq that the application is done with. */
  greet() {
    this.#at = this.#processed;
    return this.#processed;
  }
  /** Its welcome: the relay dropped everything up to `base`. False when some of that we never saw. */
  welcomed(base, { mailboxMessages }, now) {
    this.#unprocessedMax = Math.min(mailboxMessages, MAILBOX_MESSAGES_MAX) + CHANGES_MAX;
    if (!this.#started) {
      this.#started = true;
      this.#received = base;
      this.#processed = base;
    }
    if (base > this.#received) {
      return false;
    }
    this.#at = Math.max(this.#at, base);
    this.#acknowledged = base;
    this.#ackAt = this.#processed > base ? now + ACK_DELAY_MS : Infinity;
    return true;
  }
  /** Something with this number came from this generation of the peer; `announced`: it tells of the generation. */
  arrived(seq, generation, announced) {
    if (seq !== this.#at + 1) {
      return seq > this.#at ? "sequence_gap" : "repeated";
    }
    this.#at = seq;
    if (seq <= this.#received) {
      return "known";
    }
    if (this.#received - this.#processed >= this.#unprocessedMax) {
      return "flood";
    }
    this.#received = seq;
    const before = this.#generation;
    if (generation < before) {
      return "stale";
    }
    this.#generation = generation;
    return generation > before && (announced || before > 0) ? "restart" : "new";
  }
  /** The application is done with `seq` and all before it. */
  done(seq, now) {
    this.#processed = Math.max(this.#processed, Math.min(seq, this.#received));
    const waiting = this.#processed - this.#acknowledged;
    if (waiting > 0) {
      this.#ackAt = waiting >= ACK_BATCH ? now : Math.min(this.#ackAt, now + ACK_DELAY_MS);
    }
  }
  /** The seq to acknowledge now, if any. `flush` doesn't wait for company. */
  takeDue(now, flush = false) {
    if (this.#ackAt === Infinity || now < this.#ackAt && !flush) {
      return void 0;
    }
    this.#ackAt = Infinity;
    this.#acknowledged = Math.max(this.#acknowledged, this.#processed);
    return this.#acknowledged;
  }
};

// src/pace.ts
var Pace = class {
  #intervalMs = 0;
  #aheadMs = 0;
  #fullAt = -Infinity;
  constructor(limits) {
    this.told(limits);
  }
  /** The relay said what it allows, perhaps something else than before. */
  told({ messagesPerSecond, burst }) {
    this.#intervalMs = 1e3 / Math.max(1, messagesPerSecond);
    this.#aheadMs = this.#intervalMs * Math.max(0, burst - 2);
  }
  /** When the next message may go. */
  get readyAt() {
    return this.#fullAt - this.#aheadMs;
  }
  /** A message goes. */
  take(now) {
    this.#fullAt = Math.max(this.#fullAt, now) + this.#intervalMs;
  }
  /** The relay has none left before `until`: another page load of this slot had them. */
  drained(until) {
    this.#fullAt = Math.max(this.#fullAt, until + this.#aheadMs);
  }
};

// src/outbox.ts
var MESSAGES_MAX = 4096;
var BYTES_MAX = 8 * 1024 * 1024;
var WINDOW = 32;
var RETRY_MAX_MS = 6e4;
var AROUND_BYTES = '{"t":"msg","seq":18446744073709551615,"gen":4294967295,"d":""}'.length;
var QUOTES_BYTES = 2;
var Outbox = class {
  #waiting = [];
  #pace = new Pace(DEFAULT_LIMITS);
  #limits = DEFAULT_LIMITS;
  #bytes = 0;
  #lastNumber = 0;
  #sentTo = 0;
  /** Over all connections: the relay can't have more. */
  #everSentTo = 0;
  #heldUntil = -Infinity;
  /** Messages that the relay has not acknowledged. */
  get size() {
    return this.#waiting.length;
  }
  /**
   * How many messages may wait: as many as in the relay's mailbox, which is where they would wait otherwise. A smaller
   * one than usual doesn't count: here a message too many is an error, and an offer with its candidates has to fit.
   */
  get capacity() {
    return Math.min(Math.max(this.#limits.mailboxMessages, DEFAULT_LIMITS.mailboxMessages), MESSAGES_MAX);
  }
  /** Whether another message may be pushed. */
  get isFull() {
    const bytes = Math.min(Math.max(this.#limits.mailboxBytes, DEFAULT_LIMITS.mailboxBytes), BYTES_MAX);
    return this.#waiting.length >= this.capacity || this.#bytes >= bytes;
  }
  /** Longest content that can pass, in bytes of JSON between its quotes. */
  get longest() {
    const { frameBytes, mailboxBytes } = this.#limits;
    return Math.min(frameBytes - AROUND_BYTES, mailboxBytes);
  }
  /** When something held back may go. */
  get deadline() {
    const waits = this.#sentTo < Math.min(this.#lastNumber, this.#windowEnd);
    return waits ? Math.max(this.#heldUntil, this.#pace.readyAt) : Infinity;
  }
  /** Takes a message, or says why not. */
  push(d) {
    const bytes = utf8(JSON.stringify(d)).length - QUOTES_BYTES;
    if (bytes > this.longest) {
      return "too_large";
    }
    if (this.isFull) {
      return "outbox_full";
    }
    this.#lastNumber += 1;
    this.#bytes += bytes;
    this.#waiting.push({ n: this.#lastNumber, frame: writeFrame({ t: "msg", n: this.#lastNumber, d }), bytes });
    return void 0;
  }
  /** A new connection, on which the relay expects `next` and allows this much. False when that can't be. */
  welcomed(next, limits) {
    if (next <= this.#storedTo || next > this.#everSentTo + 1) {
      return false;
    }
    this.#limits = limits;
    this.#pace.told(limits);
    this.#heldUntil = -Infinity;
    this.#drop(next - 1);
    this.#sentTo = next - 1;
    return true;
  }
  /** All up to `n` is stored. False when we have not sent that far. */
  acknowledged(n) {
    if (n > this.#sentTo) {
      return false;
    }
    this.#drop(n);
    return true;
  }
  /** Nothing from `n` on was stored; it may come again after the delay. False when we have not sent that far. */
  refused(n, code, retryMs, now) {
    if (n > this.#sentTo) {
      return false;
    }
    if (n > this.#storedTo) {
      const until = now + Math.min(retryMs, RETRY_MAX_MS);
      this.#sentTo = n - 1;
      this.#heldUntil = until;
      if (code === "rate_limited") {
        this.#pace.drained(until);
      }
    }
    return true;
  }
  /** The frames that may go now. They count as sent. */
  takeDue(now) {
    const due = [];
    while (this.deadline <= now) {
      const next = this.#waiting[this.#sentTo - this.#storedTo];
      if (next === void 0) {
        break;
      }
      this.#pace.take(now);
      this.#sentTo = next.n;
      this.#everSentTo = Math.max(this.#everSentTo, next.n);
      due.push(next.frame);
    }
    return due;
  }
  get #storedTo() {
    return this.#lastNumber - this.#waiting.length;
  }
  get #windowEnd() {
    return this.#storedTo + Math.min(WINDOW, Math.max(1, this.#limits.mailboxMessages));
  }
  #drop(upTo) {
    for (const { bytes } of this.#waiting.splice(0, Math.max(0, upTo - this.#storedTo))) {
      this.#bytes -= bytes;
    }
  }
};

// src/core.ts
var DIAL_MS = 1e4;
var WAKE_DIAL_MS = 4e3;
var UNREACHABLE_MS = 11 * 6e4;
var SignalCore = class {
  #options;
  #outbox = new Outbox();
  #inbox = new Inbox();
  #ice = new IceRequests();
  #backoff;
  #effects = new Effects();
  #phase = { name: "new" };
  #dial = 0;
  #slot;
  #lastLive = 0;
  constructor(options) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
  }
  /** When {@link timer} has to be called next, if no input comes before; `Infinity`: never. */
  get deadline() {
    const phase = this.#phase;
    switch (phase.name) {
      case "new":
      case "closed":
        return Infinity;
      case "waiting":
        return phase.until;
      case "dialing":
        return phase.deadline;
      case "live":
        return Math.min(
          phase.heartbeat.deadline,
          phase.moveAt,
          this.#outbox.deadline,
          this.#inbox.deadline,
          this.#ice.deadline
        );
    }
  }
  /** Messages that the relay has not acknowledged. */
  get unacknowledged() {
    return this.#outbox.size;
  }
  /** What may be sent. */
  get room() {
    return this.#outbox;
  }
  /** Begins. */
  start(now) {
    if (this.#phase.name === "new") {
      this.#lastLive = now;
      this.#redial(now);
    }
    return this.#effects.take();
  }
  /** The socket of this dial is open. */
  opened(dial, now) {
    if (dial === this.#dial && this.#phase.name === "dialing") {
      const { ticket, connectionId } = this.#options;
      this.#say(now, { t: "hello", v: 1, ticket, cid: connectionId, try: dial, last: this.#inbox.greet() });
    }
    return this.#effects.take();
  }
  /** The socket of this dial brought something. */
  received(dial, data, now) {
    const expected = this.#phase.name === "dialing" || this.#phase.name === "live";
    if (dial === this.#dial && expected) {
      this.#read(readFrame(data), now);
    }
    return this.#effects.take();
  }
  /** The socket of this dial is closed, or could not be opened (1006). */
  closed(dial, code, now) {
    const expected = this.#phase.name === "dialing" || this.#phase.name === "live";
    if (dial === this.#dial && expected) {
      const meaning = meaningOf(code);
      if ("final" in meaning) {
        this.#finish(meaning.final, code);
      } else {
        this.#wait(meaning.retry, now);
      }
    }
    return this.#effects.take();
  }
  /** The deadline has passed. Too early or late does no harm. */
  timer(now) {
    const phase = this.#phase;
    if (phase.name === "waiting" && now >= phase.until) {
      this.#redial(now);
    } else if (phase.name === "dialing" && now >= phase.deadline) {
      this.#effects.hangUp(this.#dial, CLOSE.noWelcome);
      this.#wait("backoff", now);
    } else if (phase.name === "live") {
      this.#tick(phase, now);
    }
    return this.#effects.take();
  }
  /** The page became visible, or the network came back. */
  wake(now) {
    const phase = this.#phase;
    if (phase.name === "waiting" && !phase.patient) {
      this.#redial(now);
    } else if (phase.name === "dialing") {
      phase.deadline = Math.min(phase.deadline, now + WAKE_DIAL_MS);
    } else if (phase.name === "live" && phase.heartbeat.wake(now)) {
      this.#say(now, { t: "ping" });
    }
    return this.#effects.take();
  }
  /** Sends an opaque message, now or when connected. A refusal is the caller's to handle; nothing was sent then. */
  send(d, now) {
    if (this.#phase.name === "closed") {
      return { effects: [], fault: "closed" };
    }
    const fault = this.#outbox.push(d);
    if (fault !== void 0) {
      return { effects: [], fault };
    }
    this.#flush(now);
    return { effects: this.#effects.take() };
  }
  /** The application is done with everything up to this seq. */
  done(seq, now) {
    this.#inbox.done(seq, now);
    this.#flush(now);
    return this.#effects.take();
  }
  /** Asks for fresh TURN credentials: at once, or as soon as the relay allows it. */
  refreshIce(now) {
    this.#ice.want();
    this.#flush(now);
    return this.#effects.take();
  }
  /** Leaves for good. The peer is told when connected; else it sees `left` after the relay's grace. */
  close(mood, now) {
    if (this.#phase.name === "live") {
      this.#acknowledge(now, true);
      this.#say(now, { t: "bye", mood });
    }
    if (this.#phase.name !== "closed") {
      this.#effects.hangUp(this.#dial, CLOSE.normal);
      this.#finish("left", void 0);
    }
    return this.#effects.take();
  }
  #read(frame, now) {
    const phase = this.#phase;
    if (frame === "malformed") {
      this.#distrust("malformed_frame", CLOSE.protocolError, now);
    } else if (phase.name === "live") {
      phase.heartbeat.heard(now);
      if (frame !== "unknown") {
        this.#heed(frame, now);
      }
    } else if (frame !== "unknown" && frame.t === "welcome") {
      this.#welcomed(frame, now);
    } else {
      this.#distrust("malformed_frame", CLOSE.protocolError, now);
    }
  }
  #welcomed(frame, now) {
    const resumed = this.#slot !== void 0;
    const sameSlot = !resumed || this.#slot === frame.slot;
    const inStep = this.#outbox.welcomed(frame.next, frame.limits) && this.#inbox.welcomed(frame.base, frame.limits, now);
    if (!sameSlot || !inStep) {
      this.#effects.emit({ type: "violation", reason: "out_of_step" });
      this.#effects.hangUp(this.#dial, CLOSE.outOfStep);
      this.#finish("out_of_step", void 0);
      return;
    }
    this.#slot = frame.slot;
    this.#lastLive = now;
    this.#phase = { name: "live", since: now, heartbeat: new Heartbeat(now), moveAt: Infinity };
    this.#effects.emit({ type: "state", state: "live" });
    const { slot, role, gen: generation, expiresAt, limits, iceServers } = frame;
    this.#effects.emit({ type: "welcome", resumed, slot, role, generation, expiresAt, limits, iceServers });
    this.#effects.emit({ type: "peer", state: frame.peer.state, generation: frame.peer.gen });
    this.#flush(now);
  }
  #heed(frame, now) {
    switch (frame.t) {
      case "welcome":
        this.#distrust("malformed_frame", CLOSE.protocolError, now);
        return;
      case "ack":
        this.#settle(this.#outbox.acknowledged(frame.n), now);
        return;
      case "msg":
        this.#sequenced(frame.seq, frame.gen, { type: "message", d: frame.d }, now);
        return;
      case "peer":
        this.#presence(frame, now);
        return;
      case "ping":
        this.#say(now, { t: "pong" });
        return;
      case "pong":
        return;
      case "ice":
        this.#effects.emit({ type: "ice", iceServers: frame.iceServers, expiresAt: frame.expiresAt });
        return;
      case "goaway":
        this.#move(frame.inMs, now);
        return;
      case "err":
        this.#refused(frame, now);
        return;
    }
  }
  #presence(frame, now) {
    const event = { type: "peer", state: frame.state, generation: frame.gen };
    if (frame.seq === void 0) {
      this.#effects.emit(event);
    } else {
      this.#sequenced(frame.seq, frame.gen, event, now);
    }
  }
  #sequenced(seq, generation, item, now) {
    const arrival = this.#inbox.arrived(seq, generation, item.type === "peer");
    switch (arrival) {
      case "sequence_gap":
      case "flood":
        this.#distrust(arrival, CLOSE.outOfStep, now);
        return;
      case "known":
        return;
      case "repeated":
        this.#effects.emit({ type: "violation", reason: "repeated" });
        return;
      case "stale":
        this.#effects.emit({ type: "violation", reason: "stale_generation" });
        this.#effects.deliver({ seq, generation, item: void 0, restarted: false });
        return;
      case "new":
      case "restart":
        this.#effects.deliver({ seq, generation, item, restarted: arrival === "restart" });
    }
  }
  #refused(frame, now) {
    this.#effects.emit({ type: "refused", code: frame.code, retryMs: frame.retryMs });
    if (frame.n !== void 0) {
      this.#settle(this.#outbox.refused(frame.n, frame.code, frame.retryMs, now), now);
    }
  }
  #settle(plausible, now) {
    if (!plausible) {
      this.#effects.emit({ type: "violation", reason: "acknowledged_unsent" });
    }
    this.#flush(now);
  }
  #move(inMs, now) {
    if (this.#phase.name === "live") {
      this.#phase.moveAt = Math.min(this.#phase.moveAt, now + Math.floor(this.#options.random() * inMs));
      this.#effects.emit({ type: "goaway", inMs });
    }
  }
  #tick(phase, now) {
    const pulse = phase.heartbeat.tick(now);
    if (pulse === "lost") {
      this.#effects.hangUp(this.#dial, CLOSE.heartbeatsMissed);
      this.#wait("backoff", now);
    } else if (now >= phase.moveAt) {
      this.#effects.hangUp(this.#dial, CLOSE.normal);
      this.#lived(phase, now);
      this.#redial(now);
    } else {
      if (pulse === "ping") {
        this.#say(now, { t: "ping" });
      }
      this.#flush(now);
    }
  }
  #flush(now) {
    if (this.#phase.name !== "live") {
      return;
    }
    this.#acknowledge(now, false);
    for (const frame of this.#outbox.takeDue(now)) {
      this.#transmit(frame, now);
    }
    if (this.#ice.takeDue(now)) {
      this.#say(now, { t: "ice" });
    }
  }
  #acknowledge(now, flush) {
    const seq = this.#inbox.takeDue(now, flush);
    if (seq !== void 0) {
      this.#say(now, { t: "ack", seq });
    }
  }
  #redial(now) {
    if (now - this.#lastLive > UNREACHABLE_MS) {
      this.#finish("unreachable", void 0);
      return;
    }
    this.#dial += 1;
    this.#phase = { name: "dialing", deadline: now + DIAL_MS };
    this.#effects.emit({ type: "state", state: "connecting" });
    this.#effects.dial(this.#dial);
  }
  #wait(retry, now) {
    const phase = this.#phase;
    if (phase.name === "live") {
      this.#lived(phase, now);
    }
    const move = phase.name === "live" && retry === "moved" ? phase.moveAt : Infinity;
    const until = move < Infinity ? Math.max(now, move) : now + this.#backoff.next(retry);
    this.#phase = { name: "waiting", until, patient: retry !== "backoff" };
    this.#effects.emit({ type: "state", state: "waiting", retryInMs: until - now });
  }
  #lived({ since }, now) {
    this.#lastLive = now;
    this.#backoff.lived(now - since);
  }
  /** The relay broke the rules on this connection: report it and try another. */
  #distrust(reason, code, now) {
    this.#effects.emit({ type: "violation", reason });
    this.#effects.hangUp(this.#dial, code);
    this.#wait("backoff", now);
  }
  #finish(reason, code) {
    this.#phase = { name: "closed" };
    this.#effects.emit({ type: "state", state: "closed" });
    this.#effects.emit({ type: "closed", reason, code });
  }
  #say(now, frame) {
    this.#transmit(writeFrame(frame), now);
  }
  #transmit(frame, now) {
    if (this.#phase.name === "live") {
      this.#phase.heartbeat.said(now);
    }
    this.#effects.transmit(this.#dial, frame);
  }
};

// src/emitter.ts
var Emitter = class {
  #listeners = /* @__PURE__ */ new Map();
  /** Calls `listener` for each event of this type, until the function that is returned is called. */
  on(type, listener) {
    const listeners = this.#listeners.get(type) ?? /* @__PURE__ */ new Set();
    this.#listeners.set(type, listeners.add(listener));
    return () => {
      listeners.delete(listener);
    };
  }
  /** The next event of this type. */
  async next(type) {
    return new Promise((resolve) => {
      const stop = this.on(type, (event) => {
        stop();
        resolve(event);
      });
    });
  }
  emit(event) {
    const type = event.type;
    const listeners = this.#listeners.get(type);
    for (const listener of [...listeners ?? []]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
};

// src/envelope.ts
function writeMessage({ kind, negotiation, value }) {
  try {
    return JSON.stringify({ kind, negotiation, value: value ?? null });
  } catch {
    return void 0;
  }
}
function sealedEnvelope(secret, sessionId, slot) {
  const sealer = new SignalSealer({ secret, sessionId }, slot);
  const opener = new SignalOpener({ secret, sessionId }, slot);
  return {
    async wrap(text, longest) {
      return (sealedLength(text) ?? Infinity) > longest ? void 0 : sealer.seal(text);
    },
    async unwrap(d) {
      const opened = await opener.open(d);
      if (!opened.ok) {
        return { ok: false, reason: opened.rejection };
      }
      return unwrapped(opened.text, opened.load, opened.missing);
    }
  };
}
function plainEnvelope() {
  return {
    // A lone surrogate would be refused by the relay. What is too long the outbox tells, by its length in JSON.
    wrap: (text) => Promise.resolve(fromUtf8(utf8(text))),
    unwrap: (d, generation) => Promise.resolve(unwrapped(d, generation, 0))
  };
}
function unwrapped(text, load, missing) {
  const message = readMessage2(text, load);
  return message === void 0 ? { ok: false, reason: "malformed_message" } : { ok: true, message, missing };
}
function readMessage2(text, load) {
  try {
    const fields = JSON.parse(text);
    const { kind, negotiation, value } = fields ?? {};
    return typeof kind === "string" && typeof negotiation === "string" ? { kind, negotiation, value: value ?? null, load } : void 0;
  } catch {
    return void 0;
  }
}

// src/platform.ts
var realPlatform = {
  now: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
  random: () => Math.random(),
  onWake,
  webSocket() {
    const found = globalThis.WebSocket;
    if (found === void 0) {
      throw new TypeError("no WebSocket here: pass one as the option webSocket");
    }
    return found;
  }
};
function onWake(callback) {
  const page = globalThis.document;
  if (page === void 0) {
    return () => void 0;
  }
  const whenVisible = () => {
    if (page.visibilityState === "visible") {
      callback();
    }
  };
  globalThis.addEventListener("online", callback);
  page.addEventListener("visibilitychange", whenVisible);
  return () => {
    globalThis.removeEventListener("online", callback);
    page.removeEventListener("visibilitychange", whenVisible);
  };
}

// src/presence.ts
var Presence = class {
  #newest = { type: "peer", state: "absent", generation: 0 };
  /** Said outside the sequence: false when it is of a page load that another has replaced. */
  noticed(event) {
    const isCurrent = event.generation >= this.#newest.generation;
    if (isCurrent) {
      this.#newest = event;
    }
    return isCurrent;
  }
  /** A generation's turn has come. What to tell of it. */
  announced(event) {
    if (event.generation > this.#newest.generation) {
      this.#newest = event;
    }
    return event.generation === this.#newest.generation ? this.#newest : event;
  }
};

// src/session-types.ts
var SendError = class extends Error {
  name = "SendError";
  code;
  constructor(code) {
    super(SENTENCES[code]);
    this.code = code;
  }
};
var SENTENCES = {
  not_started: "the session is not started: call start() first",
  closed: "the session is closed",
  outbox_full: "too many messages wait for the relay",
  too_large: "the message is too large",
  not_json: "the message can't be written as JSON"
};

// src/socket.ts
var OPEN = 1;
var ABNORMAL = 1006;
var WRONG_SUBPROTOCOL = 1002;
var Socket = class {
  #url;
  #WebSocket;
  #events;
  #current;
  constructor(url, webSocket, events) {
    this.#url = url;
    this.#WebSocket = webSocket;
    this.#events = events;
  }
  /** Opens a socket in place of the one before. */
  dial(dial) {
    this.abandon();
    let socket;
    try {
      socket = new this.#WebSocket(this.#url, SUBPROTOCOL);
    } catch {
      queueMicrotask(() => {
        this.#events.closed(dial, ABNORMAL);
      });
      return;
    }
    this.#current = { dial, socket };
    socket.onopen = () => {
      this.#opened(dial, socket);
    };
    socket.onmessage = (event) => {
      this.#events.received(dial, event.data);
    };
    socket.onclose = (event) => {
      this.#events.closed(dial, event.code);
    };
    socket.onerror = nothing;
  }
  /** Sends on this dial's socket, if it still is the one. */
  transmit(dial, frame) {
    if (this.#current?.dial === dial && this.#current.socket.readyState === OPEN) {
      this.#current.socket.send(frame);
    }
  }
  /** Closes this dial's socket, if it still is the one. */
  hangUp(dial, code) {
    if (this.#current?.dial === dial) {
      this.abandon(code);
    }
  }
  /** The socket closes in its own time; nobody listens any longer. */
  abandon(code) {
    const socket = this.#current?.socket;
    this.#current = void 0;
    if (socket !== void 0) {
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = null;
      socket.onerror = nothing;
      socket.close(code);
    }
  }
  #opened(dial, socket) {
    if (socket.protocol === SUBPROTOCOL) {
      this.#events.opened(dial);
    } else {
      this.abandon();
      this.#events.closed(dial, WRONG_SUBPROTOCOL);
    }
  }
};
function nothing() {
}

// src/session.ts
var CONNECTION_ID_BYTES = 16;
var SENDERS_MAX = 256;
var Session = class extends Emitter {
  #options;
  #platform;
  #core;
  #socket;
  #envelope = deferred();
  #listening = deferred();
  /** Is there while a `send` waits for room. */
  #room;
  #stopTimer = nothing2;
  #stopWaking = nothing2;
  #sending = Promise.resolve();
  #handing = Promise.resolve();
  #unsealed = 0;
  #state = "new";
  #peer = "absent";
  #presence = new Presence();
  #slot;
  #iceServers = [];
  #left = false;
  /** Throws when an option can't be right, and in a Node without `WebSocket` when none is given. */
  constructor(options) {
    super();
    check(options);
    this.#options = options;
    this.#platform = { ...realPlatform, ...options.platform };
    this.#core = new SignalCore({
      ticket: options.ticket,
      connectionId: toHex(randomBytes(CONNECTION_ID_BYTES)),
      random: () => this.#platform.random()
    });
    this.#socket = new Socket(options.url, options.webSocket ?? this.#platform.webSocket(), {
      opened: (dial) => {
        this.#perform(this.#core.opened(dial, this.#platform.now()));
      },
      received: (dial, data) => {
        this.#perform(this.#core.received(dial, data, this.#platform.now()));
      },
      closed: (dial, code) => {
        this.#perform(this.#core.closed(dial, code, this.#platform.now()));
      }
    });
  }
  /** Where the connection to the relay stands. */
  get state() {
    return this.#state;
  }
  /** Whether the peer is there. */
  get peer() {
    return this.#peer;
  }
  /** Known from the first welcome on. */
  get slot() {
    return this.#slot;
  }
  /** TURN servers with their latest credentials, for a session made with `turn: true`. */
  get iceServers() {
    return this.#iceServers;
  }
  /** Messages that the relay has not stored yet. */
  get pending() {
    return this.#unsealed + this.#core.unacknowledged;
  }
  /** Dials, and keeps at it until the session is over or `close` is called. Listen to events before. */
  start() {
    if (this.#state === "new") {
      this.#stopWaking = this.#platform.onWake(() => {
        this.#perform(this.#core.wake(this.#platform.now()));
      });
      this.#perform(this.#core.start(this.#platform.now()));
    }
    return this;
  }
  on(type, listener) {
    if (type === "message") {
      this.#listening.resolve(void 0);
    }
    return super.on(type, listener);
  }
  /**
   * Sends a message, connected or not. Resolves when it is sealed and in line for the relay; what is in line survives
   * lost connections. Waits for the first welcome, which tells what to seal as, and while the line is full: a loop that
   * awaits each call goes as fast as the relay. Rejects with a {@link SendError}; when the session ends, with `closed`.
   */
  async send(message) {
    const text = writeMessage(message);
    if (text === void 0) {
      throw new SendError("not_json");
    }
    if (this.#state === "new" || this.#state === "closed") {
      throw new SendError(this.#state === "new" ? "not_started" : "closed");
    }
    if (this.#unsealed >= SENDERS_MAX) {
      throw new SendError("outbox_full");
    }
    this.#unsealed += 1;
    const sent = this.#sending.then(() => this.#seal(text));
    this.#sending = sent.catch(nothing2);
    return sent;
  }
  /** Asks for fresh TURN credentials; an `ice` event brings them. At most one request per 30 s leaves. */
  refreshIce() {
    this.#perform(this.#core.refreshIce(this.#platform.now()));
  }
  /** Leaves for good and tells the peer. What the relay hasn't stored is dropped: see {@link pending}. */
  close(mood = "cancelled") {
    this.#left = true;
    this.#perform(this.#core.close(mood, this.#platform.now()));
  }
  async #seal(text) {
    try {
      const envelope = await this.#envelope.promise;
      if (envelope === void 0) {
        throw new SendError("closed");
      }
      await this.#untilRoom();
      const d = await envelope.wrap(text, this.#core.room.longest);
      if (d === void 0) {
        throw new SendError("too_large");
      }
      const { effects, fault } = this.#core.send(d, this.#platform.now());
      this.#perform(effects);
      if (fault !== void 0) {
        throw new SendError(fault);
      }
    } finally {
      this.#unsealed -= 1;
    }
  }
  async #untilRoom() {
    while (this.#core.room.isFull && this.#state !== "closed") {
      this.#room ??= deferred();
      await this.#room.promise;
    }
  }
  #perform(effects) {
    for (const effect of effects) {
      switch (effect.do) {
        case "dial":
          this.#socket.dial(effect.dial);
          break;
        case "transmit":
          this.#socket.transmit(effect.dial, effect.frame);
          break;
        case "hang-up":
          this.#socket.hangUp(effect.dial, effect.code);
          break;
        case "emit":
          this.#tell(effect.event);
          break;
        case "deliver":
          this.#handing = this.#handing.then(() => this.#hand(effect));
          break;
      }
    }
    this.#arm();
    this.#callSenders();
  }
  /** Room is made by acknowledgements, by a welcome that allows more, and by the end. */
  #callSenders() {
    if (this.#room !== void 0 && (!this.#core.room.isFull || this.#state === "closed")) {
      this.#room.resolve(void 0);
      this.#room = void 0;
    }
  }
  #tell(event) {
    switch (event.type) {
      case "state":
        this.#state = event.state;
        break;
      case "welcome":
        this.#welcomed(event);
        break;
      case "peer":
        if (this.#presence.noticed(event)) {
          this.#show(event);
        }
        return;
      case "closed":
        this.#finish(event);
        return;
      case "ice":
        this.#iceServers = event.iceServers;
        break;
      case "refused":
      case "goaway":
      case "violation":
        break;
    }
    this.emit(event);
  }
  #show(event) {
    this.#peer = event.state;
    this.emit(event);
  }
  #welcomed(event) {
    this.#iceServers = event.iceServers;
    if (this.#slot === void 0) {
      const { secret, sessionId } = this.#options;
      this.#slot = event.slot;
      this.#envelope.resolve(secret === "unsealed" ? plainEnvelope() : sealedEnvelope(secret, sessionId, event.slot));
    }
  }
  #finish(event) {
    this.#stopWaking();
    this.#socket.abandon();
    this.#envelope.resolve(void 0);
    this.#listening.resolve(void 0);
    this.#handing = this.#handing.then(() => {
      this.emit(event);
    });
  }
  async #hand({ seq, generation, restarted, item }) {
    await this.#listening.promise;
    const envelope = await this.#envelope.promise;
    if (this.#left || envelope === void 0) {
      return;
    }
    if (restarted) {
      this.emit({ type: "restart", generation });
    }
    if (item?.type === "peer") {
      this.#show(this.#presence.announced(item));
    } else if (item !== void 0) {
      await this.#unwrap(envelope, item.d, generation);
    }
    this.#perform(this.#core.done(seq, this.#platform.now()));
  }
  async #unwrap(envelope, d, generation) {
    const unwrapped2 = await envelope.unwrap(d, generation);
    if (this.#left) {
      return;
    }
    if (!unwrapped2.ok) {
      this.emit({ type: "violation", reason: unwrapped2.reason });
      return;
    }
    if (unwrapped2.missing > 0) {
      this.emit({ type: "violation", reason: "gap", missing: unwrapped2.missing });
    }
    this.emit({ type: "message", ...unwrapped2.message });
  }
  #arm() {
    this.#stopTimer();
    const { deadline } = this.#core;
    if (deadline < Infinity) {
      this.#stopTimer = this.#platform.after(Math.max(0, deadline - this.#platform.now()), () => {
        this.#perform(this.#core.timer(this.#platform.now()));
      });
    }
  }
};
function check({ url, secret }) {
  if (!/^wss?:\/\//.test(url)) {
    throw new TypeError("the session's url must begin with wss:// or ws://");
  }
  if (secret !== "unsealed" && secret.length !== SECRET_BYTES) {
    throw new RangeError("the end-to-end secret must have 32 bytes");
  }
}
function deferred() {
  let resolve = nothing2;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
function nothing2() {
}

// src/leg.ts
var CANDIDATES_MAX = 256;
var Leg = class {
  peerConnection;
  #owner;
  #listening = new AbortController();
  #kept = [];
  /** Of our last description: our candidates belong to it. */
  #local = "";
  /** Of our offer that has no answer yet. */
  #offered;
  /** Of the peer's description that is applied. */
  #remote;
  #origin;
  /** The browser has something to negotiate that it has not settled since. */
  #wanted = false;
  constructor(peerConnection, owner) {
    this.peerConnection = peerConnection;
    this.#owner = owner;
    this.#listen();
  }
  /** A description of the peer is applied: this leg is bound to the peer's page load. */
  get bound() {
    return this.#remote !== void 0;
  }
  /** Something was negotiated or tried: it can't serve another peer connection. */
  get used() {
    return this.bound || this.#local !== "";
  }
  /** True when this offer comes from another `RTCPeerConnection` than the one we are bound to. */
  isFromAnother(value) {
    const description = readDescription("offer", value);
    return this.#origin !== void 0 && description !== void 0 && originOf(description.sdp) !== this.#origin;
  }
  /** Stops, for good. What is under way leads to nothing any more. */
  retire() {
    this.#listening.abort();
  }
  /** Makes an offer, unless another negotiation is under way or has settled what there was to offer. */
  async offer() {
    const connection = this.peerConnection;
    if (this.#retired || !this.#wanted || connection.signalingState !== "stable") {
      return;
    }
    this.#wanted = false;
    const negotiation = this.#owner.nameNegotiation();
    this.#local = negotiation;
    try {
      await connection.setLocalDescription();
    } catch {
      this.#owner.report("offer_failed");
      return;
    }
    this.#offered = negotiation;
    this.#sendDescription("offer", negotiation);
  }
  /** Takes a message of the peer. */
  async take({ kind, negotiation, value }) {
    switch (kind) {
      case "offer":
        await this.#takeOffer(negotiation, readDescription("offer", value));
        break;
      case "answer":
        await this.#takeAnswer(negotiation, readDescription("answer", value));
        break;
      case "candidate":
        await this.#takeCandidate(negotiation, readCandidate(value));
        break;
    }
  }
  /** Offers again what the peer's earlier page load can't have answered. */
  offerAgain() {
    const description = this.peerConnection.localDescription;
    if (this.#offered !== void 0 && description !== null) {
      this.#send("offer", this.#offered, { type: description.type, sdp: description.sdp });
    }
  }
  #listen() {
    const { signal } = this.#listening;
    const connection = this.peerConnection;
    const on = (type, listener) => {
      connection.addEventListener(type, listener, { signal });
    };
    on("negotiationneeded", () => {
      this.#wanted = true;
      this.#owner.wantsOffer(this);
    });
    on("icecandidate", (event) => {
      const { candidate } = event;
      this.#send("candidate", this.#local, candidate?.toJSON() ?? null);
    });
    on("connectionstatechange", () => {
      if (connection.connectionState === "failed") {
        this.#owner.failed();
      }
    });
  }
  async #takeOffer(negotiation, description) {
    if (description === void 0) {
      this.#owner.report("malformed");
      return;
    }
    if (negotiation === this.#remote) {
      return;
    }
    const connection = this.peerConnection;
    if (connection.signalingState === "have-local-offer" && !this.#owner.polite()) {
      return;
    }
    if (await this.#apply(negotiation, description)) {
      this.#offered = void 0;
      this.#local = negotiation;
      this.#wanted = false;
      try {
        await connection.setLocalDescription();
      } catch {
        this.#owner.report("description_refused");
        return;
      }
      this.#sendDescription("answer", negotiation);
    }
  }
  async #takeAnswer(negotiation, description) {
    if (description === void 0) {
      this.#owner.report("malformed");
    } else if (negotiation !== this.#offered || this.peerConnection.signalingState !== "have-local-offer") {
      this.#owner.report("stale_answer");
    } else if (await this.#apply(negotiation, description)) {
      this.#offered = void 0;
    }
  }
  async #takeCandidate(negotiation, candidate) {
    if (candidate === void 0) {
      this.#owner.report("malformed");
    } else if (negotiation === this.#remote) {
      await this.#add(candidate);
    } else if (this.#kept.length >= CANDIDATES_MAX) {
      this.#owner.report("too_many_candidates");
    } else {
      this.#kept.push({ negotiation, candidate });
    }
  }
  /** Sets the peer's description, which rolls back an offer of ours, and adds the candidates that came before it. */
  async #apply(negotiation, description) {
    try {
      await this.peerConnection.setRemoteDescription(description);
    } catch {
      this.#owner.report("description_refused");
      return false;
    }
    this.#remote = negotiation;
    this.#origin = originOf(description.sdp);
    const due = this.#kept.filter((kept) => kept.negotiation === negotiation);
    this.#kept = [];
    for (const { candidate } of due) {
      await this.#add(candidate);
    }
    return true;
  }
  async #add(candidate) {
    try {
      await this.peerConnection.addIceCandidate(candidate ?? void 0);
    } catch {
      this.#owner.report("candidate_refused");
    }
  }
  #sendDescription(kind, negotiation) {
    const description = this.peerConnection.localDescription;
    if (description !== null) {
      this.#send(kind, negotiation, { type: description.type, sdp: description.sdp });
    }
  }
  #send(kind, negotiation, value) {
    if (!this.#retired) {
      this.#owner.send({ kind, negotiation, value });
    }
  }
  get #retired() {
    return this.#listening.signal.aborted;
  }
};
function readDescription(type, value) {
  if (typeof value !== "object" || value === null) {
    return void 0;
  }
  const fields = value;
  return fields.type === type && typeof fields.sdp === "string" ? { type, sdp: fields.sdp } : void 0;
}
function readCandidate(value) {
  if (typeof value !== "object" || value === null) {
    return value === null ? null : void 0;
  }
  return typeof value.candidate === "string" ? value : void 0;
}
function originOf(sdp) {
  return /^o=(\S+ \S+) /m.exec(sdp)?.[1] ?? "";
}

// src/connect.ts
var PAIRING = "pairing";
var KINDS = /* @__PURE__ */ new Set(["offer", "answer", "candidate", PAIRING]);
var UNNAMED = "unnamed";
var OFFER_WAIT_MS = 50;
var NAME_BYTES = 9;
var NAMED = /^pairing-[A-Za-z0-9_-]{12}(?=$|[.])/;
function connect(peerConnection, session) {
  return new Connection(peerConnection, session);
}
var Connection = class extends Emitter {
  #source;
  #session;
  #stops;
  #queue = Promise.resolve();
  #leg;
  #iceServers = [];
  /** Of the peer, the page load that the leg talks to. */
  #load;
  #pairing;
  /** The polite side has something to offer, and waits for the first word of the other. */
  #waiting = false;
  /** The peer was told the pairing, or will be by what is on its way. */
  #told = false;
  #timer;
  #closed = false;
  /** @internal Use {@link connect}. */
  constructor(source, session) {
    super();
    this.#source = source;
    this.#session = session;
    this.#iceServers = session.iceServers;
    const welcomed = session.slot === void 0 ? session.next("welcome") : void 0;
    this.#stops = [
      session.on("welcome", ({ iceServers }) => {
        this.#useServers(iceServers);
      }),
      session.on("ice", ({ iceServers }) => {
        this.#useServers(iceServers);
      }),
      session.on("restart", () => {
        this.#enqueue(() => {
          this.#restart();
        });
      }),
      session.on("message", (message) => {
        this.#enqueue(() => this.#take(message));
      })
    ];
    this.#enqueue(async () => {
      await welcomed;
      if (this.#decides) {
        this.#namePairing();
      }
    });
    this.#leg = this.#begin(typeof source === "function" ? source() : source);
    session.start();
  }
  /** The one in use. */
  get peerConnection() {
    return this.#leg.peerConnection;
  }
  /** Stops negotiating. Leaves the `RTCPeerConnection` and the session as they are. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#leg.retire();
    for (const stop of this.#stops) {
      stop();
    }
  }
  #begin(peerConnection) {
    this.#configure(peerConnection);
    return new Leg(peerConnection, this.#owner());
  }
  #owner() {
    return {
      polite: () => !this.#decides,
      send: (message) => {
        this.#send(message);
      },
      report: (problem) => {
        this.#report(problem);
      },
      nameNegotiation: () => `${this.#pairing ?? ""}.${randomName()}`,
      wantsOffer: (leg) => {
        this.#enqueue(() => this.#offer(leg));
      },
      failed: () => {
        this.#session.refreshIce();
        this.#leg.peerConnection.restartIce();
      }
    };
  }
  async #offer(leg) {
    if (leg === this.#leg) {
      this.#waiting = this.#pairing === void 0;
      await (this.#waiting ? void 0 : leg.offer());
    }
  }
  async #take(message) {
    const { kind, load, negotiation } = message;
    if (!KINDS.has(kind)) {
      return;
    }
    if (this.#load !== void 0 && load !== this.#load) {
      this.#restart();
    }
    this.#load = load;
    if (!this.#belongs(negotiation)) {
      return;
    }
    if (kind === "offer" && this.#leg.isFromAnother(message.value)) {
      this.#renew();
    }
    await this.#leg.take(message);
    if (this.#waiting) {
      await this.#offer(this.#leg);
    }
  }
  /** Whether this negotiation is for our leg; the polite side makes that so. */
  #belongs(negotiation) {
    const [pairing] = NAMED.exec(negotiation) ?? [this.#pairing ?? UNNAMED];
    if (pairing === this.#pairing) {
      return true;
    }
    if (this.#decides || this.#leg.used && !this.#renew()) {
      return false;
    }
    this.#pairing = pairing;
    return true;
  }
  /**
   * The peer's page load that we talked to is gone. A leg with an offer without an answer is replaced, too: the page
   * may have begun to connect to it before it went.
   */
  #restart() {
    this.#load = void 0;
    const offersAgain = this.#decides && typeof this.#source !== "function" && !this.#leg.bound;
    const replaces = this.#leg.used && !offersAgain;
    if (replaces && !this.#renew()) {
      return;
    }
    if (!this.#decides) {
      this.#pairing = void 0;
    } else if (replaces) {
      this.#namePairing();
    } else {
      this.#tellPairingSoon();
      this.#leg.offerAgain();
    }
  }
  #namePairing() {
    this.#pairing = `pairing-${randomName()}`;
    this.#tellPairingSoon();
  }
  /**
   * An offer of ours tells the pairing as well, and is better: the polite side, which waits for our first word, then
   * answers it, where it would have made an offer of its own and had to roll it back.
   */
  #tellPairingSoon() {
    this.#told = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#enqueue(() => {
        if (!this.#told) {
          this.#send({ kind: PAIRING, negotiation: this.#pairing ?? UNNAMED, value: null });
        }
      });
    }, OFFER_WAIT_MS);
  }
  get #decides() {
    return this.#session.slot === "a";
  }
  /** A new leg in place of the one before; false when we were given only one connection. */
  #renew() {
    if (typeof this.#source !== "function") {
      this.#report("needs_new_connection");
      return false;
    }
    this.#leg.retire();
    this.#leg.peerConnection.close();
    this.#leg = this.#begin(this.#source());
    this.emit({ type: "replaced", peerConnection: this.#leg.peerConnection });
    return true;
  }
  #send(message) {
    this.#told ||= message.kind === "offer" || message.kind === PAIRING;
    this.#session.send(message).catch(() => {
      this.#report("not_sent");
    });
  }
  #useServers(iceServers) {
    this.#iceServers = iceServers;
    this.#configure(this.#leg.peerConnection);
  }
  /** For the gatherings to come. */
  #configure(peerConnection) {
    if (this.#iceServers.length === 0 || peerConnection.signalingState === "closed") {
      return;
    }
    const configuration = peerConnection.getConfiguration();
    const ours = new Set(this.#iceServers.map(({ urls }) => String(urls)));
    const theirs = (configuration.iceServers ?? []).filter(({ urls }) => !ours.has(String(urls)));
    peerConnection.setConfiguration({ ...configuration, iceServers: [...theirs, ...this.#iceServers] });
  }
  #report(reason) {
    if (!this.#closed) {
      this.emit({ type: "problem", reason });
    }
  }
  #enqueue(job) {
    this.#queue = this.#queue.then(() => this.#closed ? void 0 : job());
  }
};
function randomName() {
  return toBase64Url(randomBytes(NAME_BYTES));
}

// src/mood.ts
async function moodOf(peerConnection) {
  if (peerConnection.connectionState !== "connected") {
    return "failed";
  }
  const stats = /* @__PURE__ */ new Map();
  (await peerConnection.getStats()).forEach((entry) => stats.set(entry.id, entry));
  const entries = [...stats.values()];
  const chosen = entries.find(({ selectedCandidatePairId }) => selectedCandidatePairId !== void 0);
  const pair = stats.get(chosen?.selectedCandidatePairId ?? "") ?? entries.find(({ selected }) => selected === true);
  const ends = [pair?.localCandidateId, pair?.remoteCandidateId].map((id) => stats.get(id ?? "")?.candidateType);
  return ends.includes("relay") ? "relayed" : "direct";
}

// src/instance-types.ts
var ERROR_CODES = [
  "invalid_request",
  "unauthorized",
  "revoked",
  "suspended",
  "enrollment_closed",
  "origin_not_allowed",
  "not_found",
  "method_not_allowed",
  "request_timeout",
  "session_full",
  "settings_conflict",
  "idempotency_conflict",
  "payload_too_large",
  "unsupported_media_type",
  "rate_limited",
  "internal_error",
  "send_failed",
  "not_configured",
  "platform_not_configured",
  "overloaded",
  "draining"
];

// src/http.ts
var TIMEOUT_MS = 3e4;
var VISIBLE_ASCII = /^[\x21-\x7e]+$/;
var Http = class {
  #base;
  #options;
  constructor(url, options) {
    if (!/^https?:\/\//.test(url)) {
      throw new TypeError("the relay's url must begin with https:// or http://");
    }
    this.#base = url.replace(/[/]+$/, "");
    this.#options = options;
  }
  /** Sends a request and reads its answer. */
  async call(method, path, request, read) {
    const init = this.#init(method, request);
    let response;
    let text;
    try {
      response = await (this.#options.fetch ?? fetch)(this.#base + path, init);
      text = await response.text();
    } catch (error) {
      return unanswered(error);
    }
    const fields = text === "" ? {} : readObject(text);
    if (!response.ok) {
      return refusal(response, fields);
    }
    const answer = fields === void 0 ? void 0 : read(fields, response.status);
    return answer === void 0 ? unexpected(response) : { ok: true, value: answer.value };
  }
  #init(method, { body, bearer, timeoutMs }) {
    const headers = { accept: "application/json" };
    const token = bearer === void 0 ? this.#options.instanceKey : bearer;
    if (token === void 0 || token !== null && !VISIBLE_ASCII.test(token)) {
      throw new TypeError("this call needs an instance key, visible ASCII as the relay gave it");
    }
    if (token !== null) {
      headers["authorization"] = `Bearer ${token}`;
    }
    if (body !== void 0) {
      headers["content-type"] = "application/json";
    }
    return {
      method,
      headers,
      // The key is for this relay alone.
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS),
      ...body === void 0 ? {} : { body: JSON.stringify(body) }
    };
  }
};
function isErrorCode(value) {
  return ERROR_CODES.includes(value);
}
function isObject2(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
function unanswered(error) {
  const name = error instanceof Error ? error.name : "";
  if (name === "TimeoutError" || name === "AbortError") {
    return { ok: false, error: "timed_out", message: "the relay did not answer in time" };
  }
  const cause = error instanceof Error ? error.cause : void 0;
  const code = typeof cause?.code === "string" ? ` (${cause.code})` : "";
  return { ok: false, error: "unreachable", message: `the relay could not be reached${code}` };
}
function refusal(response, fields) {
  const { error, message } = fields ?? {};
  if (!isErrorCode(error) || typeof message !== "string") {
    return unexpected(response);
  }
  return { ok: false, error, message, ...about(response) };
}
function unexpected(response) {
  const message = `the answer with status ${response.status} is not one of the relay's`;
  return { ok: false, error: "unexpected_answer", message, ...about(response) };
}
function about(response) {
  const requestId = response.headers.get("x-request-id");
  const after = response.headers.get("retry-after") ?? "";
  return {
    status: response.status,
    .../^[0-9]{1,9}$/.test(after) ? { retryAfterSeconds: Number(after) } : {},
    ...requestId === null ? {} : { requestId }
  };
}
function readObject(text) {
  try {
    const value = JSON.parse(text);
    return isObject2(value) ? value : void 0;
  } catch {
    return void 0;
  }
}

// src/instance-answers.ts
var CREATED = 201;
var readEnrollment = ({ instanceId, instanceKey }) => isText(instanceId) && isText(instanceKey) ? { value: { instanceId, instanceKey } } : void 0;
var readRotation = ({ instanceId, instanceKey, previousValidUntil }) => isText(instanceId) && isText(instanceKey) && isText(previousValidUntil) ? { value: { instanceId, instanceKey, previousValidUntil } } : void 0;
var readPush = (fields) => {
  const { result, reason, invalidSince, messageId, retryable } = fields;
  if (result === "sent") {
    return { value: isText(messageId) ? { result, messageId } : { result } };
  }
  if (!isText(reason)) {
    return void 0;
  }
  if (result === "invalid_token") {
    return isText(invalidSince) ? { value: { result, reason, invalidSince } } : void 0;
  }
  return result === "failed" ? { value: { result, reason, retryable: retryable === true, ...readRetryAfter(fields) } } : void 0;
};
function readBatch(fields, count) {
  const { results } = fields;
  if (!Array.isArray(results) || results.length !== count) {
    return void 0;
  }
  const read = results.map(readBatchEntry).filter((result) => result !== void 0);
  return read.length === count ? { value: read } : void 0;
}
var readTickets = (fields) => {
  const [basics, tickets] = [readBasics(fields), fields["tickets"]];
  if (basics === void 0 || !isObject2(tickets)) {
    return void 0;
  }
  const { a, b } = tickets;
  return isText(a) && isText(b) ? { value: { ...basics, tickets: { a, b } } } : void 0;
};
var readMeeting = (fields, status) => {
  const [basics, tickets] = [readBasics(fields), fields["tickets"]];
  if (basics === void 0 || !isObject2(tickets)) {
    return void 0;
  }
  const { a, b } = tickets;
  const own = isText(a) ? { slot: "a", ticket: a } : isText(b) ? { slot: "b", ticket: b } : void 0;
  return own === void 0 ? void 0 : { value: { ...basics, ...own, created: status === CREATED } };
};
var readSessionState = ({ sessionId, expiresAt, slots }) => {
  if (!isText(sessionId) || !isText(expiresAt) || !isObject2(slots)) {
    return void 0;
  }
  const [a, b] = [readSlot(slots["a"]), readSlot(slots["b"])];
  return a !== void 0 && b !== void 0 ? { value: { sessionId, expiresAt, slots: { a, b } } } : void 0;
};
var readCapabilities = (fields) => {
  const { platforms, signaling, limits, version } = fields;
  const whole = isObject2(platforms) && isObject2(signaling) && isObject2(limits) && isText(version);
  if (!whole || !Array.isArray(signaling["subprotocols"])) {
    return void 0;
  }
  return { value: fields };
};
function readBatchEntry(entry) {
  if (!isObject2(entry)) {
    return void 0;
  }
  const { error, message } = entry;
  if (isErrorCode(error) && isText(message)) {
    return { ok: false, error, message, ...readRetryAfter(entry) };
  }
  const answer = readPush(entry, 200);
  return answer === void 0 ? void 0 : { ok: true, value: answer.value };
}
function readBasics(fields) {
  const { sessionId, expiresAt, url } = fields;
  const limits = readLimits(fields["limits"]);
  return isText(sessionId) && isText(expiresAt) && isText(url) && limits !== void 0 ? { sessionId, expiresAt, url, limits } : void 0;
}
function readSlot(value) {
  if (!isObject2(value)) {
    return void 0;
  }
  const { state, gen, queued } = value;
  return isText(state) && typeof gen === "number" && typeof queued === "number" ? { state, gen, queued } : void 0;
}
function readRetryAfter({ retryAfterSeconds }) {
  return typeof retryAfterSeconds === "number" ? { retryAfterSeconds } : {};
}
function isText(value) {
  return typeof value === "string" && value !== "";
}

// src/instance.ts
var BATCH_TIMEOUT_MS = 5 * 6e4;
var Instance = class {
  #http;
  /** `instanceKey` as `enroll` gave it; without one, only `enroll` and `capabilities` can be called. */
  constructor(url, options = {}) {
    this.#http = new Http(url, options);
  }
  /** Becomes an instance of this relay. The key is a secret to keep; make an `Instance` with it for all the rest. */
  async enroll(about2 = {}) {
    const { invite, ...body } = about2;
    return this.#http.call("POST", "/v1/enroll", { body, bearer: invite ?? null }, readEnrollment);
  }
  /** One notification to one device. */
  async push(message) {
    return this.#http.call("POST", "/v1/push", { body: message }, readPush);
  }
  /** 1 to 500 notifications, answered in order. One that is wrong spoils no other. */
  async pushBatch(messages) {
    const request = { body: { messages }, timeoutMs: BATCH_TIMEOUT_MS };
    return this.#http.call("POST", "/v1/push/batch", request, (answer) => readBatch(answer, messages.length));
  }
  /** A session with both tickets: keep one, hand the other and a secret of your own making to the other side. */
  async createSession(settings = {}) {
    return this.#http.call("POST", "/v1/signal/sessions", { body: settings }, readTickets);
  }
  /** The session of a rendezvous that both sides derived; it is made by whoever comes first. */
  async meet(rendezvous, settings = {}) {
    return this.#http.call("POST", "/v1/signal/sessions", { body: { ...settings, rendezvous } }, readMeeting);
  }
  /** Who is there and how much waits; never content. */
  async session(sessionId) {
    return this.#http.call("GET", `/v1/signal/sessions/${encodeURIComponent(sessionId)}`, {}, readSessionState);
  }
  /** Ends the session: nothing of it is delivered after the answer. */
  async deleteSession(sessionId) {
    return this.#http.call("DELETE", `/v1/signal/sessions/${encodeURIComponent(sessionId)}`, {}, readNothing);
  }
  /** What this relay can do. */
  async capabilities() {
    return this.#http.call("GET", "/v1/capabilities", { bearer: null }, readCapabilities);
  }
  /** A new key; the old one works on for `graceSeconds` (24 h by default). */
  async rotateKey(options = {}) {
    return this.#http.call("POST", "/v1/keys/rotate", { body: options }, readRotation);
  }
  /** Leaves the relay: the key is revoked and the record erased. */
  async withdraw() {
    return this.#http.call("DELETE", "/v1/enrollment", {}, readNothing);
  }
};
function readNothing() {
  return { value: void 0 };
}
export {
  ERROR_CODES,
  Instance,
  OpenError,
  PADDED_BYTES,
  SealError,
  SendError,
  Session,
  SignalOpener,
  SignalSealer,
  connect,
  deriveRendezvous,
  exportDevicePublicKey,
  fromBase64Url,
  generateDeviceKey,
  importDeviceKey,
  moodOf,
  newSecret,
  open,
  seal,
  toBase64Url
};

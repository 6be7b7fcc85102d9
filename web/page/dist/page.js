// Sovereign Relay, playground page. AGPL-3.0-or-later. Built from web/page by `npm run build`: edit there.

// page/main.ts
import { newSecret, toBase64Url } from "./sovereign-relay.js";

// page/backend.ts
async function makeSession() {
  const response = await fetch("/sessions", { method: "POST" });
  const body = await response.json();
  if (!response.ok) {
    throw new Error(body.message ?? `the playground answered ${response.status}`);
  }
  return body;
}
async function findWires() {
  return await (await fetch("/wires")).json();
}
async function cutWire(slot) {
  await fetch(`/wires/${slot}/cut`, { method: "POST" });
}
async function refuseAll() {
  await fetch("/wires/refuse", { method: "POST" });
}

// page/dom.ts
function byId(id) {
  return byKind(id, HTMLElement);
}
function byKind(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`index.html has no ${kind.name} ${id}`);
  }
  return found;
}
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}
function onPress(id, listener) {
  byId(id).addEventListener("click", listener);
}
function appendFollowing(list, item) {
  const reads = list.scrollHeight - list.scrollTop - list.clientHeight > NEAR_PX;
  list.append(item);
  if (!reads) {
    list.scrollTop = list.scrollHeight;
  }
}
var NEAR_PX = 80;
function announce(text) {
  byId("announcer").textContent = text;
}

// page/place.ts
var KEY = "sovereign-playground";
function findPlace() {
  const linked = fromFragment();
  if (linked !== void 0) {
    keep(linked);
  }
  return linked ?? kept();
}
function keep(place) {
  sessionStorage.setItem(KEY, JSON.stringify(place));
}
function forget() {
  sessionStorage.removeItem(KEY);
}
function link({ sessionId, invitation, secret, expiresAt }) {
  if (invitation === void 0) {
    return void 0;
  }
  return `${location.origin}/#${new URLSearchParams({ sessionId, ticket: invitation, secret, expiresAt }).toString()}`;
}
function fromFragment() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (location.hash !== "") {
    history.replaceState(null, "", location.pathname);
  }
  const [sessionId, ticket] = [fragment.get("sessionId"), fragment.get("ticket")];
  const [secret, expiresAt] = [fragment.get("secret"), fragment.get("expiresAt")];
  if (sessionId === null || ticket === null || secret === null || expiresAt === null) {
    return void 0;
  }
  return { slot: "b", sessionId, ticket, secret, expiresAt };
}
function kept() {
  const text = sessionStorage.getItem(KEY);
  return text === null ? void 0 : JSON.parse(text);
}

// page/scene.ts
import { connect, fromBase64Url, moodOf } from "./sovereign-relay.js";

// page/chat.ts
var Chat = class {
  #log = byId("chat-log");
  #text = byKind("chat-text", HTMLInputElement);
  #button = byKind("chat-send", HTMLButtonElement);
  #channel;
  constructor() {
    byKind("chat-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#use(false);
  }
  /** Talks over this channel as soon as it is open; an earlier one is forgotten. */
  attach(channel, onChange) {
    this.#channel = channel;
    channel.onmessage = ({ data }) => {
      this.#say("theirs", "Peer", String(data));
    };
    channel.onopen = () => {
      if (channel === this.#channel) {
        this.#use(true);
        this.#note("Connected, tab to tab");
        announce("Connected: you can chat");
        onChange();
      }
    };
    channel.onclose = () => {
      if (channel === this.#channel) {
        this.#use(false);
        this.#note("The connection is gone");
        onChange();
      }
    };
    this.#use(false);
  }
  /** Whether words get through. */
  get isOpen() {
    return this.#channel?.readyState === "open";
  }
  #send() {
    const text = this.#text.value.trim();
    if (text === "" || this.#channel?.readyState !== "open") {
      return;
    }
    this.#channel.send(text);
    this.#text.value = "";
    this.#say("own", "You", text);
  }
  #use(isOpen) {
    this.#text.disabled = !isOpen;
    this.#button.disabled = !isOpen;
    this.#text.placeholder = isOpen ? "Say something" : "Waiting for the connection";
  }
  #say(className, who, text) {
    appendFollowing(this.#log, make("li", className, make("span", "unseen", `${who}: `), text));
  }
  #note(text) {
    appendFollowing(this.#log, make("li", "note", text));
  }
};

// page/words.ts
function describe({ kind, value }) {
  switch (kind) {
    case "offer":
    case "answer":
      return `key fingerprint ${fingerprint(field(value, "sdp"))}`;
    case "candidate":
      return value === null ? "no more addresses" : address(field(value, "candidate"));
    case "pairing":
      return "a name for this connection";
    default:
      return "";
  }
}
function inFull({ kind, negotiation, value }) {
  const sdp = field(value, "sdp");
  const head = `kind: ${kind}
negotiation: ${negotiation}

`;
  return head + (sdp === "" ? JSON.stringify(value, null, 2) : sdp.trimEnd());
}
function shorten(sealed) {
  return { head: `${sealed.slice(0, HEAD_CHARS)}…`, size: `${sealed.length.toLocaleString("en")} bytes` };
}
var HEAD_CHARS = 44;
function field(value, name) {
  const found = value?.[name];
  return typeof found === "string" ? found : "";
}
function fingerprint(sdp) {
  const found = /^a=fingerprint:\S+ ((?:[0-9A-F]{2}:){5}[0-9A-F]{2})/m.exec(sdp)?.[1];
  return found === void 0 ? "missing" : `${found}…`;
}
function address(candidate) {
  const [, , transport = "", , host = "", port = ""] = candidate.split(" ");
  return host === "" ? "no more addresses" : `${transport.toLowerCase()} ${host}:${port}`;
}

// page/ledger.ts
var ROWS_MAX = 400;
var Ledger = class {
  #list = byId("ledger");
  #sent = /* @__PURE__ */ new Map();
  #came = /* @__PURE__ */ new Map();
  #onMessage;
  #stored = 0;
  /** `onMessage` hears of each message once it is on the wire or opened. */
  constructor(onMessage) {
    this.#onMessage = onMessage;
  }
  sending(n, message) {
    const row = new Row("out");
    row.open(message);
    row.wait();
    this.#sent.set(n, row);
    this.#add(row.element);
  }
  sent(n, sealed) {
    const row = this.#sent.get(n);
    row?.seal(sealed);
    if (row?.message !== void 0 && row.times === 1) {
      this.#onMessage("out", row.message);
    }
  }
  stored(n) {
    for (; this.#stored < n; this.#stored += 1) {
      this.#sent.get(this.#stored + 1)?.store();
    }
  }
  came(seq, sealed) {
    const row = new Row("in");
    row.seal(sealed);
    this.#came.set(seq, row);
    this.#add(row.element);
  }
  opened(seq, message) {
    const row = this.#came.get(seq);
    if (message === void 0) {
      row?.reject();
    } else {
      row?.open(message);
      this.#onMessage("in", message);
    }
  }
  greeted(direction, text) {
    this.#add(make("li", `greeting ${direction}`, arrow(direction), make("span", "", text)));
  }
  #add(item) {
    appendFollowing(this.#list, item);
    if (this.#list.childElementCount > ROWS_MAX) {
      this.#list.firstElementChild?.remove();
    }
  }
};
var Row = class {
  element;
  #sealed = make("span", "sealed");
  #opened = make("span", "opened");
  #allSealed = make("pre", "all sealed-text");
  #allOpened = make("pre", "all opened-text");
  message;
  times = 0;
  #mark = "";
  #text = "";
  constructor(direction) {
    const summary = make("summary", "", arrow(direction), this.#sealed, this.#opened);
    const all = make("div", "both", this.#allSealed, this.#allOpened);
    this.element = make("li", `row ${direction}`, make("details", "", summary, all));
  }
  wait() {
    this.#sealed.replaceChildren(make("i", "", "waits for the relay"));
  }
  seal(text) {
    this.times += 1;
    this.#text = text;
    this.#allSealed.textContent = text;
    if (this.times > 1) {
      this.#mark = `sent ${this.times} times`;
    }
    this.#showSealed();
  }
  store() {
    this.#mark = this.times > 1 ? `sent ${this.times} times, stored once` : "stored";
    this.#showSealed();
  }
  open(message) {
    this.message = message;
    const kind = make("b", `kind ${message.kind}`, message.kind);
    this.#opened.replaceChildren(kind, " ", make("span", "words", describe(message)));
    this.#allOpened.textContent = inFull(message);
  }
  reject() {
    this.#opened.replaceChildren(make("b", "kind rejected", "not authentic"), " not taken");
  }
  #showSealed() {
    const { head, size } = shorten(this.#text);
    const mark = this.#mark === "" ? "" : ` · ${this.#mark}`;
    this.#sealed.replaceChildren(make("code", "", head), " ", make("small", "", size + mark));
  }
};
function arrow(direction) {
  const word = make("span", "unseen", direction === "out" ? "sent " : "came ");
  const sign = make("span", "", direction === "out" ? "↑" : "↓");
  sign.ariaHidden = "true";
  return make("span", "arrow", word, sign);
}

// page/map.ts
var OWN = {
  new: ["idle", "not connected"],
  connecting: ["busy", "dialing"],
  live: ["live", "connected"],
  waiting: ["broken", "cut"],
  closed: ["idle", "over"]
};
var PEER = {
  absent: ["idle", "not there yet"],
  online: ["live", "connected"],
  away: ["broken", "lost, may resume"],
  left: ["idle", "left"]
};
function nameTabs(slot) {
  const [own, other] = slot === "a" ? ["A", "B"] : ["B", "A"];
  byId("own-name").textContent = `Peer ${own}`;
  byId("own-state").textContent = "this tab";
  byId("peer-name").textContent = `Peer ${other}`;
  byId("peer-state").textContent = "the other tab";
  byId("badge").textContent = `You are peer ${own}`;
  byId("badge").hidden = false;
}
function showOwn(state, retryInMs) {
  const [line, words] = OWN[state];
  const wait = state === "waiting" && retryInMs !== void 0 ? `, dials again in ${seconds(retryInMs)}` : "";
  draw("own-wire", line, words + wait);
}
function showPeer(presence) {
  draw("peer-wire", ...PEER[presence]);
}
function showDirect(isOpen, state) {
  if (isOpen) {
    draw("direct", "live", "data channel open, encrypted from tab to tab");
  } else {
    const isBusy = state === "connecting";
    draw("direct", isBusy ? "busy" : "idle", isBusy ? "finding a direct way" : "no direct connection yet");
  }
}
function draw(id, line, words) {
  byId(id).dataset["state"] = line;
  byId(`${id}-label`).textContent = words;
}
function seconds(milliseconds) {
  return `${(milliseconds / 1e3).toFixed(1)} s`;
}

// page/steps.ts
function atFirst(place) {
  return { place, peerHere: false, candidatesSent: 0, candidatesOpened: 0, connected: false };
}
function afterMessage(before, direction, { kind }) {
  const done = direction === "out" ? "sent" : "opened";
  switch (kind) {
    case "pairing":
      return renewed(before);
    case "offer":
      return { ...renewed(before), offer: done };
    case "answer":
      return { ...before, answer: done };
    case "candidate":
      return direction === "out" ? { ...before, candidatesSent: before.candidatesSent + 1 } : { ...before, candidatesOpened: before.candidatesOpened + 1 };
    default:
      return before;
  }
}
function renewed({ place, welcome, peerHere }) {
  return { ...atFirst(place), ...welcome === void 0 ? {} : { welcome }, peerHere };
}
var ANSWERED = { sent: "offer opened, answer sent", opened: "offer sent, answer opened" };
function steps(progress) {
  const { place, welcome, peerHere, offer, answer, candidatesSent, candidatesOpened, connected } = progress;
  const descriptions = answer === void 0 ? offer && `offer ${offer}` : ANSWERED[answer];
  const candidates = `${candidatesSent} sent, ${candidatesOpened} opened`;
  return [
    { title: "A place in a session", detail: place, isDone: true },
    { title: "Hello to the relay", detail: welcome ?? "dialing", isDone: welcome !== void 0 },
    { title: "The other side is here", detail: peerHere ? "both have said hello" : "not yet", isDone: peerHere },
    {
      title: "Offer and answer",
      detail: descriptions ?? "who speaks which keys, sealed",
      isDone: connected || offer !== void 0 && answer !== void 0
    },
    {
      title: "Addresses to try",
      detail: candidatesSent + candidatesOpened > 0 ? candidates : "ICE candidates, sealed",
      isDone: connected || candidatesSent > 0 && candidatesOpened > 0
    },
    {
      title: "Connected",
      detail: connected ? "the relay is out of the way" : "a data channel from tab to tab",
      isDone: connected
    }
  ];
}
function showSteps(progress) {
  const all = steps(progress);
  const next = all.findIndex(({ isDone }) => !isDone);
  const items = all.map(({ title, detail, isDone }, index) => {
    const state = isDone ? "done" : index === next ? "next" : "later";
    const item = make("li", state, make("b", "", title), make("span", "", detail));
    if (state === "next") {
      item.setAttribute("aria-current", "step");
    }
    const word = { done: "done: ", next: "now: ", later: "" }[state];
    item.prepend(make("span", "unseen", word));
    return item;
  });
  byId("steps").replaceChildren(...items);
}

// page/watched.ts
import { Session } from "./sovereign-relay.js";
var WatchedSession = class extends Session {
  #watcher;
  /** Calls of `send` that were not refused. */
  #sends = 0;
  constructor(options, watcher) {
    const arrived = [];
    let highest = 0;
    const take = (frame) => {
      if (frame.t === "msg" && frame.seq !== void 0 && frame.seq > highest) {
        highest = frame.seq;
        arrived.push(frame.seq);
        watcher.came(frame.seq, frame.d ?? "");
      } else if (frame.t === "ack" && frame.n !== void 0) {
        watcher.stored(frame.n);
      } else if (frame.t === "welcome") {
        const { role = "", gen = 0, next = 0 } = frame;
        watcher.greeted("in", `welcome · ${role} · page load ${gen} · send from message ${next}`);
      }
    };
    super({ ...options, webSocket: tapped((frame) => {
      give(watcher, frame);
    }, take) });
    this.#watcher = watcher;
    this.on("message", (message) => {
      watcher.opened(arrived.shift() ?? 0, message);
    });
    this.on("violation", ({ reason }) => {
      if (reason !== "gap") {
        watcher.opened(arrived.shift() ?? 0, void 0);
      }
    });
  }
  async send(message) {
    this.#sends += 1;
    this.#watcher.sending(this.#sends, message);
    await super.send(message);
  }
};
function give(watcher, frame) {
  if (frame.t === "msg" && frame.n !== void 0) {
    watcher.sent(frame.n, frame.d ?? "");
  } else if (frame.t === "hello") {
    watcher.greeted("out", `hello · ticket and id (hidden here) · dial ${frame.try ?? 0} · have ${frame.last ?? 0}`);
  }
}
function tapped(out, came) {
  return class extends WebSocket {
    constructor(url, protocol) {
      super(url, protocol);
      this.addEventListener("message", ({ data }) => {
        came(JSON.parse(String(data)));
      });
    }
    send(data) {
      out(JSON.parse(data));
      super.send(data);
    }
  };
}

// page/scene.ts
var DISTURBANCES = ["cut", "refuse", "end"];
var Scene = class {
  #place;
  #progress;
  #session;
  #chat = new Chat();
  #connection;
  constructor(place, url) {
    const secret = fromBase64Url(place.secret);
    if (secret === void 0) {
      throw new TypeError("the link is incomplete");
    }
    this.#place = place;
    this.#progress = atFirst(
      place.slot === "a" ? "a ticket for each side, a secret for both" : "ticket and secret came with the link"
    );
    const ledger = new Ledger((direction, message) => {
      this.#advance(afterMessage(this.#progress, direction, message));
    });
    this.#session = new WatchedSession({ url, sessionId: place.sessionId, ticket: place.ticket, secret }, ledger);
  }
  /** Shows it, and shakes hands. */
  start() {
    this.#show();
    this.#offerButtons();
    this.#listen();
    this.#connection = connect(() => this.#makeConnection(), this.#session);
    this.#connection.on("replaced", () => {
      announce("The other side reloaded: a new connection is negotiated");
      this.#advance(renewed(this.#progress));
    });
  }
  #show() {
    nameTabs(this.#place.slot);
    showSteps(this.#progress);
    showDirect(false, "new");
    byId("expiry").textContent = `expires ${new Date(this.#place.expiresAt).toLocaleTimeString()}`;
    const address2 = link(this.#place);
    byId("invite").hidden = address2 === void 0;
    byKind("open-link", HTMLAnchorElement).href = address2 ?? "/";
  }
  /** What one `RTCPeerConnection` carries. Called again when the other side reloads. */
  #makeConnection() {
    const peerConnection = new RTCPeerConnection();
    const channel = peerConnection.createDataChannel("chat", { negotiated: true, id: 0 });
    this.#chat.attach(channel, () => {
      this.#showDirect(peerConnection);
    });
    peerConnection.onconnectionstatechange = () => {
      this.#showDirect(peerConnection);
    };
    return peerConnection;
  }
  #listen() {
    const session = this.#session;
    session.on("state", ({ state, retryInMs }) => {
      showOwn(state, retryInMs);
      if (state === "waiting") {
        announce("The socket to the relay is cut");
      }
    });
    session.on("welcome", ({ role, generation, resumed }) => {
      const load = generation === 1 ? "first page load" : `page load ${generation}`;
      this.#advance({ ...this.#progress, welcome: `welcome: ${role}, ${load}${resumed ? ", resumed" : ""}` });
      announce(resumed ? "Resumed: nothing was lost" : "Connected to the relay");
    });
    session.on("peer", ({ state }) => {
      showPeer(state);
      announce(`The other side is ${state}`);
      this.#advance({ ...this.#progress, peerHere: this.#progress.peerHere || state === "online" });
      if (state === "online") {
        this.#forgetInvitation();
      }
    });
    session.on("closed", ({ reason }) => {
      this.#finish(reason);
    });
  }
  /** The other side has its ticket: ours to give away no longer. */
  #forgetInvitation() {
    const { invitation, ...place } = this.#place;
    if (invitation !== void 0) {
      const hadFocus = byId("invite").contains(document.activeElement);
      this.#place = place;
      keep(place);
      byId("invite").hidden = true;
      byKind("open-link", HTMLAnchorElement).href = "/";
      if (hadFocus) {
        byId("session-title").focus();
      }
    }
  }
  #offerButtons() {
    const { slot } = this.#place;
    onPress("copy-link", () => {
      void this.#copyLink();
    });
    onPress("cut", () => {
      void cutWire(slot);
    });
    onPress("refuse", () => {
      void refuseAll();
    });
    onPress("reload", () => {
      location.reload();
    });
    onPress("end", () => {
      void this.#leave();
    });
    onPress("again", () => {
      location.reload();
    });
  }
  async #copyLink() {
    await navigator.clipboard.writeText(link(this.#place) ?? "");
    byId("copy-link").textContent = "Copied";
    announce("Link copied");
  }
  async #leave() {
    const peerConnection = this.#connection?.peerConnection;
    this.#session.close(peerConnection === void 0 ? "cancelled" : await moodOf(peerConnection));
  }
  /** The secrets are of no more use. A data channel that is open goes on: it never needed the relay. */
  #finish(reason) {
    forget();
    for (const id of DISTURBANCES) {
      byKind(id, HTMLButtonElement).disabled = true;
    }
    byId("invite").hidden = true;
    byId("over").hidden = false;
    byId("over-reason").textContent = SENTENCES[reason] ?? `The relay closed it (${reason}).`;
    announce("The session is over");
    byId("again").focus();
  }
  #showDirect(peerConnection) {
    showDirect(this.#chat.isOpen, peerConnection.connectionState);
    this.#advance({ ...this.#progress, connected: this.#chat.isOpen });
  }
  #advance(progress) {
    this.#progress = progress;
    showSteps(progress);
  }
};
var SENTENCES = {
  left: "You ended it.",
  over: "Its time is up, or both sides left.",
  no_session: "The relay doesn’t know it (any more).",
  replaced: "Another tab took this place.",
  bad_ticket: "The link is wrong or too old."
};

// page/main.ts
async function begin() {
  const place = findPlace();
  addEventListener("hashchange", () => {
    location.reload();
  });
  if (place === void 0) {
    byId("welcome").hidden = false;
    onPress("start", () => {
      void start();
    });
  } else {
    await enter(place);
  }
}
async function start() {
  const button = byKind("start", HTMLButtonElement);
  button.disabled = true;
  try {
    const { sessionId, expiresAt, tickets } = await makeSession();
    const secret = toBase64Url(newSecret());
    const place = { slot: "a", sessionId, expiresAt, secret, ticket: tickets.a, invitation: tickets.b };
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
async function enter(place) {
  const wires = await findWires();
  byId("welcome").hidden = true;
  byId("session").hidden = false;
  new Scene(place, wires[place.slot]).start();
}
void begin();

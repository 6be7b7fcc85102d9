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
async function endSession(sessionId) {
  const response = await fetch(`/sessions/${sessionId}/end`, { method: "POST" });
  if (!response.ok) {
    throw new Error(`the playground answered ${response.status}`);
  }
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
import { fromBase64Url } from "./sovereign-relay.js";
var KEY = "sovereign-playground";
var SECRET_BYTES = 32;
var WHOLE_TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
function findPlace() {
  const { hash } = location;
  if (hash === "") {
    return kept();
  }
  history.replaceState(null, "", location.pathname);
  const linked = readLink(hash);
  if (linked === void 0) {
    return "incomplete";
  }
  keep(linked);
  return linked;
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
function readLink(hash) {
  const fragment = new URLSearchParams(hash.slice(1));
  const field2 = (name) => fragment.get(name) ?? "";
  const [sessionId, ticket, secret, expiresAt] = [field2("sessionId"), field2("ticket"), field2("secret"), field2("expiresAt")];
  const isWhole = sessionId !== "" && ticket !== "" && fromBase64Url(secret)?.length === SECRET_BYTES && WHOLE_TIME.test(expiresAt);
  return isWhole ? { slot: "b", sessionId, ticket, secret, expiresAt } : void 0;
}
function kept() {
  const text = sessionStorage.getItem(KEY);
  return text === null ? void 0 : JSON.parse(text);
}

// page/scene.ts
import { connect, fromBase64Url as fromBase64Url2 } from "./sovereign-relay.js";

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
    this.#text.placeholder = isOpen ? "Say something" : "Not connected yet";
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
function roleInWords(role) {
  return role === "impolite" ? "impolite (if offers cross, its own stands)" : "polite (if offers cross, it yields)";
}
function inSeconds(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1e3);
  return seconds > 0 ? `in ${seconds} s` : "now";
}
function tookSeconds(milliseconds) {
  return `${(milliseconds / 1e3).toFixed(1)} s`;
}
function peerInWords(presence, isFresh) {
  return isFresh ? PEER[presence] : `last known: ${PEER[presence]}`;
}
var PEER = {
  absent: "not there yet",
  online: "connected",
  away: "lost, may resume",
  left: "left"
};
function endInWords(ending) {
  if (ending.reason === "replaced") {
    return {
      title: "Another tab took your place",
      text: "It has this side of the session now, and a new connection to the other side. Go on there and close this tab."
    };
  }
  const stays = ending.connected ? " The chat goes on: it never needed the relay." : "";
  return { title: "The session is over", text: whyOver(ending) + stays };
}
function whyOver({ reason, here, expired }) {
  if (reason !== "over" && reason !== "no_session") {
    return REASONS[reason] ?? `The relay closed it (${reason}).`;
  }
  if (here) {
    return "You ended it, for both sides.";
  }
  return expired ? "Its time is up." : "The other side ended it, or the relay was restarted.";
}
var REASONS = {
  left: "You left it, but the playground did not answer: the other side may still be in it.",
  bad_ticket: "The link is wrong or too old.",
  unreachable: "The relay was out of reach for longer than a session lives."
};
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
  /** Something that happened to the socket between frames. */
  note(text) {
    this.#add(make("li", "greeting note", make("span", ""), make("span", "", text)));
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
var COUNT_MS = 250;
var OWN = {
  new: ["idle", "not connected"],
  connecting: ["busy", "dialing"],
  live: ["live", "connected"],
  waiting: ["broken", "cut"],
  closed: ["idle", "over"]
};
var PEER2 = { absent: "idle", online: "live", away: "broken", left: "idle" };
function nameTabs(slot) {
  const [own, other] = slot === "a" ? ["A", "B"] : ["B", "A"];
  byId("own-name").textContent = `Peer ${own}`;
  byId("own-state").textContent = "this tab";
  byId("peer-name").textContent = `Peer ${other}`;
  byId("peer-state").textContent = "the other tab";
  byId("badge").textContent = `You are peer ${own}`;
  byId("badge").hidden = false;
  document.title = `Peer ${own} · Sovereign Relay playground`;
}
var counting;
function showOwn(state, retryInMs) {
  clearInterval(counting);
  const [line, words] = OWN[state];
  if (state !== "waiting" || retryInMs === void 0) {
    draw("own-wire", line, words);
    return;
  }
  const dialsAt = performance.now() + retryInMs;
  const count = () => {
    draw("own-wire", line, `${words}, dials again ${inSeconds(dialsAt - performance.now())}`);
  };
  count();
  counting = setInterval(count, COUNT_MS);
}
function showPeer(presence, own) {
  if (own === "closed") {
    draw("peer-wire", "idle", "over");
  } else {
    draw("peer-wire", own === "live" ? PEER2[presence] : "idle", peerInWords(presence, own === "live"));
  }
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

// page/steps.ts
function atFirst(place) {
  return { place, peerHere: false, candidatesSent: 0, candidatesOpened: 0, connected: false };
}
function afterMessage(before, direction, message) {
  const { kind } = message;
  const done = direction === "out" ? "sent" : "opened";
  switch (kind) {
    case "pairing":
      return paired(before, message);
    case "offer":
      return { ...paired(before, message), offer: done, answer: void 0 };
    case "answer":
      return { ...before, answer: done };
    case "candidate":
      return direction === "out" ? { ...before, candidatesSent: before.candidatesSent + 1 } : { ...before, candidatesOpened: before.candidatesOpened + 1 };
    default:
      return before;
  }
}
function paired(before, { negotiation }) {
  const [pairing = ""] = negotiation.split(".");
  return pairing === before.pairing ? before : { ...renewed(before), pairing };
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
var COPIED_MS = 2e3;
var Scene = class {
  #place;
  #progress;
  #session;
  #chat = new Chat();
  #ledger;
  /** Since when the socket is cut. */
  #cutAt;
  #endedHere = false;
  constructor(place, url) {
    const secret = fromBase64Url2(place.secret);
    if (secret === void 0) {
      throw new TypeError("the link is incomplete");
    }
    this.#place = place;
    this.#progress = atFirst(
      place.slot === "a" ? "a ticket for each side, a secret for both" : "ticket and secret came with the link"
    );
    this.#ledger = new Ledger((direction, message) => {
      this.#advance(afterMessage(this.#progress, direction, message));
    });
    this.#session = new WatchedSession({ url, sessionId: place.sessionId, ticket: place.ticket, secret }, this.#ledger);
  }
  /** Shows it, and shakes hands. */
  start() {
    this.#show();
    this.#offerButtons();
    this.#listen();
    const connection = connect(() => this.#makeConnection(), this.#session);
    connection.on("replaced", () => {
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
      if (this.#progress.welcome !== void 0 || state === "closed") {
        showPeer(session.peer, state);
      }
      if (state === "waiting") {
        this.#lose();
      }
    });
    session.on("welcome", ({ role, generation, resumed }) => {
      const load = generation === 1 ? "first page load" : `page load ${generation}`;
      const welcome = `${roleInWords(role)}, ${load}${resumed ? ", resumed" : ""}`;
      this.#advance({ ...this.#progress, welcome });
      this.#return(resumed);
    });
    session.on("peer", ({ state }) => {
      showPeer(state, session.state);
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
  /** The socket is gone. Said once, however many dials fail. */
  #lose() {
    if (this.#cutAt === void 0) {
      this.#cutAt = performance.now();
      this.#trace("Socket cut. Messages wait until it is back.");
    }
  }
  #return(resumed) {
    if (this.#cutAt === void 0 || !resumed) {
      announce("Connected to the relay");
    } else {
      this.#trace(`Socket back after ${tookSeconds(performance.now() - this.#cutAt)}, nothing lost.`);
    }
    this.#cutAt = void 0;
  }
  #trace(text) {
    byId("trace").textContent = text;
    this.#ledger.note(text);
    announce(text);
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
      void this.#end();
    });
    onPress("again", () => {
      location.reload();
    });
  }
  async #copyLink() {
    await navigator.clipboard.writeText(link(this.#place) ?? "");
    const button = byId("copy-link");
    button.textContent = "Copied";
    announce("Link copied");
    setTimeout(() => {
      button.textContent = "Copy link";
    }, COPIED_MS);
  }
  /** The instance deletes the session, and the relay tells both sides; without an answer this side leaves. */
  async #end() {
    this.#endedHere = true;
    byKind("end", HTMLButtonElement).disabled = true;
    try {
      await endSession(this.#place.sessionId);
    } catch {
      this.#session.close();
    }
  }
  /** The secrets are of no more use. A data channel that is open goes on: it never needed the relay. */
  #finish(reason) {
    forget();
    for (const id of DISTURBANCES) {
      byKind(id, HTMLButtonElement).disabled = true;
    }
    byId("invite").hidden = true;
    byId("expiry").hidden = true;
    byId("trace").textContent = "";
    byId("over").hidden = false;
    const { title, text } = endInWords({
      reason,
      here: this.#endedHere,
      expired: Date.now() >= Date.parse(this.#place.expiresAt),
      connected: this.#chat.isOpen
    });
    byId("over-title").textContent = title;
    byId("over-reason").textContent = text;
    announce(title);
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

// page/main.ts
async function begin() {
  const place = findPlace();
  addEventListener("hashchange", () => {
    location.reload();
  });
  if (place === void 0 || place === "incomplete") {
    byId("welcome").hidden = false;
    byId("trouble").textContent = place === void 0 ? "" : "This link is incomplete: copy all of it, or start a session of your own.";
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
  byId("trouble").textContent = "";
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

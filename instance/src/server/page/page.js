// The page of the reference server: sign in, register this browser, send yourself a notification, read the log.
"use strict";

const at = (id) => document.getElementById(id);
const DEVICES = "/api/account/push-device-token";
const SUBSCRIPTIONS = "/api/account/push-subscription";

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(method, path, body) {
  const request = { method, headers: {} };
  if (body !== undefined) {
    request.headers["content-type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  const response = await fetch(path, request);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.message ?? "The server did not answer.");
  return answer;
}

/** Does something for the person; what goes wrong is said at the top of the page. */
function attempt(work) {
  return async (event) => {
    event?.preventDefault();
    at("trouble").hidden = true;
    try {
      await work(event);
    } catch (error) {
      if (error.status === 401) showSignIn();
      at("trouble").textContent = error.message;
      at("trouble").hidden = error.status === 401 && event === undefined;
    }
  };
}

function showSignIn() {
  at("sign-in").hidden = false;
  at("signed-in").hidden = true;
  at("who").hidden = true;
}

function time(seconds) {
  return seconds === null ? "never" : new Date(seconds * 1000).toLocaleString();
}

function row(cells) {
  const line = document.createElement("tr");
  for (const cell of cells) {
    const place = line.appendChild(document.createElement("td"));
    place.append(cell);
  }
  return line;
}

function remover(device) {
  const button = document.createElement("button");
  button.className = "quiet";
  button.textContent = "Remove";
  button.addEventListener("click", attempt(async () => {
    await call("DELETE", `${DEVICES}/${device.id}`);
    await showDevices();
  }));
  return button;
}

async function showDevices() {
  const { relayEnabled, devices } = await call("GET", DEVICES);
  at("relay").textContent = relayEnabled
    ? "Apps that sign in here are told through the relay."
    : "The relay is turned off: apps are told nothing while they are closed.";
  const rows = devices.map((device) =>
    row([device.platform, time(device.createdAt), time(device.lastUsedAt), remover(device)]));
  at("devices").tBodies[0].replaceChildren(...rows);
  at("devices").hidden = rows.length === 0;
}

/** What this browser has of its own, if it can have any. */
async function ownSubscription() {
  if (!("serviceWorker" in navigator && "PushManager" in window)) return undefined;
  const worker = await navigator.serviceWorker.getRegistration();
  return (await worker?.pushManager.getSubscription()) ?? null;
}

function browserInWords(pushEnabled, subscribed, own) {
  if (!pushEnabled) return "Browsers are not told: Web Push is turned off.";
  if (own === undefined) return "This browser can't be told here: push needs https, or localhost.";
  if (!subscribed) return "No browser is told yet.";
  return own === null ? "Another browser is told." : "This browser is told.";
}

async function showBrowser() {
  const { pushEnabled, subscribed } = await call("GET", SUBSCRIPTIONS);
  const own = await ownSubscription();
  at("subscribe").hidden = !pushEnabled || own === undefined || (own !== null && subscribed);
  at("unsubscribe").hidden = !subscribed;
  at("browser").textContent = browserInWords(pushEnabled, subscribed, own);
}

async function showLog() {
  const { entries } = await call("GET", "/api/me/log?limit=50");
  const rows = entries.map((entry) =>
    row([time(entry.at), entry.platform ?? "browser", entry.outcome, entry.reason.replaceAll("_", " ")]));
  at("log").tBodies[0].replaceChildren(...rows);
  at("log").hidden = rows.length === 0;
  at("log-empty").hidden = rows.length > 0;
}

async function show() {
  const { user } = await call("GET", "/api/me");
  at("name").textContent = user;
  at("who").hidden = false;
  at("sign-in").hidden = true;
  at("signed-in").hidden = false;
  await Promise.all([showDevices(), showBrowser(), showLog()]);
}

async function subscribe() {
  const { publicKey } = await call("GET", SUBSCRIPTIONS);
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("The browser was told not to show notifications of this page.");
  }
  await navigator.serviceWorker.register("/push-worker.js");
  const worker = await navigator.serviceWorker.ready;
  // A subscription to another key, of an earlier database, would receive nothing.
  await (await worker.pushManager.getSubscription())?.unsubscribe();
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
  await call("POST", SUBSCRIPTIONS, subscription.toJSON());
  await showBrowser();
}

async function unsubscribe() {
  await (await ownSubscription())?.unsubscribe();
  await call("DELETE", SUBSCRIPTIONS);
  await showBrowser();
}

async function notify() {
  at("sent").textContent = "";
  const { sent, targets } = await call("POST", "/api/me/notifications", { title: at("title").value, body: at("body").value });
  at("sent").textContent = targets === 0 ? "There is nobody to tell: register a device first." : `${sent} of ${targets} told.`;
  await Promise.all([showDevices(), showBrowser(), showLog()]);
}

at("sign-in").addEventListener("submit", attempt(async () => {
  await call("POST", "/api/session", { token: at("token").value.trim() });
  at("token").value = "";
  await show();
}));
at("sign-out").addEventListener("click", attempt(async () => {
  await call("DELETE", "/api/session");
  showSignIn();
}));
at("subscribe").addEventListener("click", attempt(subscribe));
at("unsubscribe").addEventListener("click", attempt(unsubscribe));
at("notify").addEventListener("submit", attempt(notify));
attempt(show)();

// Two tabs of the playground in a real Chromium. One shakes hands with the other through the relay while sockets are
// cut and one of them reloads in the middle; then they chat. Prints as JSON what the test needs to judge the rest.
//
// PAGE_URL: the playground's page. CHROMIUM: the browser. PICTURES: a folder for screenshots.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const { chromium } = createRequire(new URL("../../web/package.json", import.meta.url))("playwright-core");
const { PAGE_URL, CHROMIUM, PICTURES } = process.env;

// A browser that is doing nothing wrong may still be slow on a busy machine.
const DEADLINE_MS = 60_000;
const WIDE = { width: 1280, height: 1000 };
const LAPTOP = { width: 1280, height: 720 };
const SMALL_PHONE = { width: 320, height: 640 };
const PHONE = { width: 390, height: 844 };

async function run() {
  const context = await browser.newContext({ viewport: WIDE, colorScheme: "light" });
  context.setDefaultTimeout(DEADLINE_MS);
  const [first, second] = [await Tab.open(context), await Tab.open(context)];

  const link = await startSession(first);
  await first.loses("Cut my socket");
  await meet(first, second, link);
  await reloadInTheMiddle(first, second);
  await both(first, second, (tab) => tab.sees("#direct[data-state=live]"));
  await chat(first, second, "Hello from A");
  await chat(second, first, "And from B, after a reload");
  await picture(second, "signaling");
  await sharesAView(second, ["#own-wire", "#chat-text"]);

  await refuseEverybody(first, second);
  await chat(first, second, "Still here: the relay isn’t needed");
  const secrets = [...new URLSearchParams(new URL(link).hash.slice(1)).values()].slice(1, 3);
  const result = { secrets, ...(await inspect([first, second], secrets)) };
  await endSession(first, second, link);
  return result;
}

/** Presses the button by keyboard alone; gives the link for the other side. */
async function startSession(tab) {
  await tab.page.goto(PAGE_URL);
  await picture(tab, "start");
  await tab.button("Start a session").focus();
  await tab.page.keyboard.press("Enter");
  const open = tab.page.getByRole("link", { name: "Open second tab" });
  await open.waitFor();
  assert.equal(await open.evaluate((element) => element === document.activeElement), true, "the next thing has the focus");
  await tab.sees("#ledger .row.out .kind.offer");
  return open.evaluate((element) => element.href);
}

/** The second tab comes, and both descriptions are exchanged; candidates are held back, so nothing connects yet. */
async function meet(first, second, link) {
  await second.page.goto(link);
  // The page names itself once it knows where the relay is, which may be after it has loaded.
  await first.isCalled("Peer A");
  await second.isCalled("Peer B");
  await first.sees("#ledger .row.in .kind.answer");
  await second.sees("#ledger .row.out .kind.answer");
  await both(first, second, (tab) => tab.sees("#direct:not([data-state=live])"));
}

/** The page that gave the answer goes away with its keys, its socket is cut, and the next load negotiates anew. */
async function reloadInTheMiddle(first, second) {
  await second.loses("Cut my socket");
  const loaded = second.page.waitForEvent("load");
  await second.button("Reload this tab").press("Enter");
  await loaded;
  await both(first, second, (tab) => tab.page.evaluate(() => globalThis.letCandidatesPass()));
}

async function chat(from, to, text) {
  await from.page.getByRole("textbox", { name: "Message" }).fill(text);
  await from.page.keyboard.press("Enter");
  await to.page.getByRole("log", { name: "Messages" }).getByText(text).waitFor();
}

/** Both lose the relay, keep each other, and resume where they were. */
async function refuseEverybody(first, second) {
  await both(first, second, (tab) => tab.page.evaluate(() => void (globalThis.shown = [])));
  const resumed = await Promise.all([first, second].map((tab) => tab.nextWelcome()));
  await first.button("Refuse all connections for 5 s").click();
  await Promise.all(resumed.map((welcome) => welcome.waitFor()));
  await both(first, second, (tab) => tab.showedOnceItWasCutOff());
  await both(first, second, (tab) => tab.page.locator("#trace", { hasText: /back after .* nothing lost/ }).waitFor());
  await both(first, second, (tab) => tab.sees("#own-wire[data-state=live]"));
}

/** One side ends it for both; the chat goes on, and who comes late is told. */
async function endSession(first, second, link) {
  const says = (tab, text) => tab.page.locator("#over-reason", { hasText: text }).waitFor();
  await first.button("End session").click();
  await says(first, "You ended it, for both sides.");
  await says(second, "The other side ended it");
  for (const tab of [first, second]) {
    await tab.page.getByRole("heading", { name: "The session is over" }).waitFor();
    await tab.page.locator("#peer-wire-label", { hasText: "over" }).waitFor();
    assert.equal(await tab.page.locator("#expiry").isVisible(), false);
    assert.equal(await tab.page.evaluate(() => sessionStorage.length), 0, "nothing is kept after the end");
  }
  await chat(second, first, "Without any session");
  const late = await Tab.open(first.page.context());
  await late.page.goto(link);
  await says(late, "ended");
  await late.page.goto(link.slice(0, -9));
  await late.page.getByRole("alert").filter({ hasText: "This link is incomplete" }).waitFor();
  await late.page.close();
  await first.button("New session").press("Enter");
  await first.button("Start a session").waitFor();
}

/** What is left behind: in address bars, in storage, on the wire. */
async function inspect(tabs, secrets) {
  const carried = tabs.flatMap(({ sent }) => sent);
  const hellos = carried.filter(({ t }) => t === "hello");
  const sealed = carried.flatMap(({ t, d }) => (t === "msg" ? [d] : []));
  const ofOneLoad = [...new Set([...hellos.map(({ cid }) => cid), ...sealed.map((d) => d.split(".")[1])])];
  for (const { page, problems, addresses } of tabs) {
    assert.equal(page.url(), PAGE_URL);
    assert.deepEqual(problems, []);
    assert.deepEqual([...addresses], ["127.0.0.1"], "nothing from elsewhere");
    const kept = await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie]));
    assert.deepEqual(ofOneLoad.filter((value) => kept.includes(value)), [], "what one page load drew is not stored");
    assert.ok(kept.includes(secrets[1]), "the secret is kept for a reload");
  }
  for (const secret of secrets) {
    const inMarkup = await tabs[0].page.content();
    assert.ok(!inMarkup.includes(secret), "the page shows no secret once the other side is here");
  }
  return { connectionIds: hellos.map(({ cid }) => cid), tickets: hellos.map(({ ticket }) => ticket), sealed };
}

/** In light, in dark, and on a phone. */
async function picture(tab, name) {
  const { page } = tab;
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(PICTURES, `${name}-${colorScheme}.png`) });
  }
  for (const viewport of [SMALL_PHONE, PHONE]) {
    await page.setViewportSize(viewport);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} px too wide for a phone of ${viewport.width} px`);
  }
  await page.screenshot({ path: join(PICTURES, `${name}-phone.png`), fullPage: true });
  await page.setViewportSize(WIDE);
  await page.emulateMedia({ colorScheme: "light" });
}

/** Without scrolling on a small laptop. */
async function sharesAView({ page }, selectors) {
  await page.setViewportSize(LAPTOP);
  await page.evaluate(() => scrollTo(0, 0));
  for (const selector of selectors) {
    const { y, height } = await page.locator(selector).boundingBox();
    assert.ok(y + height <= LAPTOP.height, `${selector} ends at ${y + height} px`);
  }
  await page.screenshot({ path: join(PICTURES, "signaling-laptop.png") });
  await page.setViewportSize(WIDE);
}

async function both(first, second, look) {
  await Promise.all([look(first), look(second)]);
}

class Tab {
  sent = [];
  problems = [];
  addresses = new Set();

  constructor(page) {
    this.page = page;
  }

  static async open(context) {
    const tab = new Tab(await context.newPage());
    await tab.page.addInitScript(holdCandidates);
    await tab.page.addInitScript(keepWhatIsShown);
    tab.page.on("console", (message) => tab.#heard(message));
    tab.page.on("pageerror", (error) => tab.problems.push(String(error)));
    tab.page.on("request", (request) => tab.addresses.add(new URL(request.url()).hostname));
    tab.page.on("websocket", (socket) => {
      tab.addresses.add(new URL(socket.url()).hostname);
      socket.on("framesent", ({ payload }) => tab.sent.push(JSON.parse(payload)));
    });
    return tab;
  }

  /** A socket that is cut is reported by the browser itself; all else is a problem. */
  #heard(message) {
    if (message.type() === "error" && !/WebSocket connection to .* failed/.test(message.text())) {
      this.problems.push(message.text());
    }
  }

  button(name) {
    return this.page.getByRole("button", { name, exact: true });
  }

  async sees(selector) {
    await this.page.locator(selector).first().waitFor({ state: "attached" });
  }

  async isCalled(name) {
    await this.page.waitForFunction((name) => document.title.startsWith(name), name);
  }

  /** What the page shows without the relay is over in seconds: it is asked what it did show, not what it shows. */
  async showedOnceItWasCutOff() {
    const shown = await this.page.evaluate(() => globalThis.shown);
    const cutOff = shown.filter(({ own, peer }) => own === "broken" && peer.includes("last known"));
    assert.notDeepEqual(cutOff, [], "it says that it knows of the other side by the relay alone");
    assert.deepEqual(cutOff.filter(({ direct }) => direct !== "live"), [], "the direct line holds");
  }

  /** Where the next welcome will be that comes after this call. */
  async nextWelcome() {
    const greetings = this.page.locator("#ledger .greeting.in");
    return greetings.nth(await greetings.count());
  }

  /** Loses its socket by this button, and resumes. */
  async loses(name) {
    await this.sees("#own-wire[data-state=live]");
    const resumed = await this.nextWelcome();
    await this.button(name).click();
    await resumed.waitFor();
  }
}

/** Runs in the page before its own script: candidates are applied only once the test lets them. */
function holdCandidates() {
  const passed = new Promise((resolve) => {
    globalThis.letCandidatesPass = resolve;
  });
  const apply = RTCPeerConnection.prototype.addIceCandidate;
  RTCPeerConnection.prototype.addIceCandidate = async function (candidate) {
    await passed;
    return apply.call(this, candidate);
  };
}

/** Runs in the page: keeps each state that its lines were seen in. */
function keepWhatIsShown() {
  globalThis.shown = [];
  const look = () => {
    const [own, direct] = ["own-wire", "direct"].map((id) => document.getElementById(id)?.dataset.state);
    const peer = document.getElementById("peer-wire-label")?.textContent ?? "";
    globalThis.shown.push({ own, direct, peer });
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributeFilter: ["data-state"] });
}

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  // Both tabs are on this machine: their own addresses are all they need, and there is no multicast DNS in a container.
  args: ["--no-sandbox", "--disable-features=WebRtcHideLocalIpsWithMdns"],
});
try {
  console.log(JSON.stringify(await run()));
} finally {
  await browser.close();
}

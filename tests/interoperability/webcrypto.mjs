// The sealed payload with the web client in a real browser's WebCrypto. Driven by tests/it/interoperability.rs; the
// protocol is in README.md. CHROMIUM: the browser.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { chromium } = createRequire(new URL("../../web/package.json", import.meta.url))("playwright-core");

/** WebCrypto is only there for pages of a secure origin, and loopback is one. */
async function serveClient() {
  const client = await readFile(new URL("../../web/dist/sovereign-relay.js", import.meta.url));
  const server = createServer((request, response) => {
    const script = request.url === "/client.js";
    response.setHeader("content-type", script ? "text/javascript" : "text/html");
    response.end(script ? client : "<!doctype html><title>Interoperability</title>");
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}

/** Runs in the page. */
async function answer([name, ...fields]) {
  const { exportDevicePublicKey, generateDeviceKey, importDeviceKey, open, seal } = await import("/client.js");
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const base64 = (data) => btoa(String.fromCharCode(...data));
  const calls = {
    async generate() {
      const pair = await generateDeviceKey(true);
      const { d } = await crypto.subtle.exportKey("jwk", pair.privateKey);
      const scalar = bytes(d.replaceAll("-", "+").replaceAll("_", "/"));
      return `${base64(scalar)} ${await exportDevicePublicKey(pair.publicKey)}`;
    },
    seal: (publicKey, text) => seal(JSON.parse(new TextDecoder().decode(bytes(text))), publicKey),
    async open(scalar, publicKey, sealed) {
      const key = await importDeviceKey(bytes(scalar), publicKey);
      return base64(new TextEncoder().encode(await open(sealed, key)));
    },
  };
  try {
    return `ok ${await calls[name](...fields)}`;
  } catch {
    return "refused";
  }
}

const server = await serveClient();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(await page.evaluate(answer, line.split(" ")));
  }
} finally {
  await browser.close();
  server.close();
}

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import * as entry from "../src/sovereign-relay.js";

// From build/test/.
const root = new URL("../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");

test("the README shows the examples as they are type checked", () => {
  const shown = [...read("README.md").matchAll(/<!-- (\S+) -->\n```ts\n([^]*?)```/g)];
  assert.equal(shown.length, readdirSync(new URL("examples", root)).length);
  for (const [, path, text] of shown) {
    assert.equal(text, read(path!), path);
  }
});

test("the built module exports what the sources do", async () => {
  const built = (await import(new URL("dist/sovereign-relay.js", root).href)) as object;
  assert.deepEqual(Object.keys(built).sort(), Object.keys(entry).sort());
});

test("the sources have no dependency at run time and reach for no Node module", () => {
  const manifest = JSON.parse(read("package.json")) as Record<string, unknown>;
  assert.equal(manifest["dependencies"], undefined);
  for (const name of readdirSync(new URL("src", root))) {
    for (const [, path] of read(`src/${name}`).matchAll(/from "([^"]+)"/g)) {
      assert.match(path!, /^\.\/[a-z-]+\.js$/, name);
    }
  }
});

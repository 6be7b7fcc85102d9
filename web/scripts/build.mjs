// Builds dist/: one module that a page can import as it is, and its types; and page/dist/: the playground's page, which
// imports that module. `--check` builds beside them and compares, so that what is committed is what the sources say.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const outputs = [
  { folder: "dist", make: makeClient },
  { folder: "page/dist", make: makePage },
];

for (const { folder, make } of outputs) {
  if (process.argv.includes("--check")) {
    await check(folder, make);
  } else {
    rmSync(join(root, folder), { recursive: true, force: true });
    await make(join(root, folder));
  }
}

async function check(folder, make) {
  const fresh = mkdtempSync(join(tmpdir(), "sovereign-relay-web-"));
  try {
    await make(fresh);
    const stale = differences(fresh, join(root, folder));
    if (stale.length > 0) {
      console.error(`${folder}/ is not what the sources build: ${stale.join(", ")}. Run: npm run build`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

async function makeClient(folder) {
  await bundle({
    entryPoints: ["src/sovereign-relay.ts"],
    outfile: join(folder, "sovereign-relay.js"),
    banner: { js: banner("web client", "web/src") },
  });
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.dist.json"), "--outDir", join(folder, "types")], {
    stdio: "inherit",
  });
}

async function makePage(folder) {
  await bundle({
    entryPoints: ["page/main.ts"],
    outfile: join(folder, "page.js"),
    banner: { js: banner("playground page", "web/page") },
    // Served beside it.
    alias: { "@sovereignfs/relay-client": "./sovereign-relay.js" },
    external: ["./sovereign-relay.js"],
  });
}

async function bundle(options) {
  await build({
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    logLevel: "warning",
    ...options,
  });
}

function banner(name, sources) {
  return `// Sovereign Relay, ${name}. AGPL-3.0-or-later. Built from ${sources} by \`npm run build\`: edit there.`;
}

function differences(fresh, committed) {
  const names = new Set([...files(fresh), ...files(committed)]);
  return [...names].filter((name) => text(join(fresh, name)) !== text(join(committed, name)));
}

function files(folder) {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  } catch {
    return [];
  }
}

function text(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

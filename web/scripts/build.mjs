// Builds dist/: one module that a page can import as it is, and its types. `--check` builds beside it and compares,
// so that what is committed is what the sources say.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");

if (process.argv.includes("--check")) {
  check();
} else {
  rmSync(dist, { recursive: true, force: true });
  await make(dist);
}

async function check() {
  const fresh = mkdtempSync(join(tmpdir(), "sovereign-relay-web-"));
  try {
    await make(fresh);
    const stale = differences(fresh, dist);
    if (stale.length > 0) {
      console.error(`dist/ is not what the sources build: ${stale.join(", ")}. Run: npm run build`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

async function make(folder) {
  await build({
    absWorkingDir: root,
    entryPoints: ["src/sovereign-relay.ts"],
    outfile: join(folder, "sovereign-relay.js"),
    bundle: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    banner: { js: "// Sovereign Relay, web client. AGPL-3.0-or-later. Built from web/src by `npm run build`: edit there." },
    logLevel: "warning",
  });
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.dist.json"), "--outDir", join(folder, "types")], {
    stdio: "inherit",
  });
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

// Runs scenarios of the conformance kit of MCP against a server, and prints each result as one line of JSON.
//
//     mcp_conformance.mjs FOLDER URL REVISION SCENARIO…
//     mcp_conformance.mjs FOLDER list
//
// The second form prints the scenarios for servers that the kit has, one in a line.
// FOLDER holds `@modelcontextprotocol/conformance` in `node_modules`. The kit loads on Node.js 20 too, whose `fs` lacks a
// function that only other commands of it use.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [folder, url, revision, ...scenarios] = process.argv.slice(2);
const kit = join(folder, "@modelcontextprotocol/conformance/dist/index.js");

const builtin = "data:text/javascript," + encodeURIComponent(
  'export * from "node:fs"; export { promises } from "node:fs"; export function globSync() { throw new Error("globSync"); }',
);
const hooks = "data:text/javascript," + encodeURIComponent(`
export async function resolve(name, context, next) {
  const ours = context.parentURL?.includes("/@modelcontextprotocol/conformance/");
  if (name === "fs" && ours) return { url: ${JSON.stringify(builtin)}, format: "module", shortCircuit: true };
  return next(name, context);
}`);
const register = "data:text/javascript," + encodeURIComponent(
  `import { register } from "node:module"; register(${JSON.stringify(hooks)});`,
);

/** The files named `checks.json` below a folder. */
function checks(below) {
  return readdirSync(below, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name === "checks.json")
    .flatMap((entry) => JSON.parse(readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8")));
}

if (url === "list") {
  const run = spawnSync(process.execPath, ["--import", register, kit, "list", "--server"], { encoding: "utf8" });
  for (const line of run.stdout.split("\n")) {
    const name = line.match(/^ +- (\S+)/)?.[1];
    if (name) console.log(name);
  }
}

for (const scenario of scenarios) {
  const results = mkdtempSync(join(tmpdir(), "mcp-conformance-"));
  const words = ["server", "--url", url, "--scenario", scenario, "--spec-version", revision, "--output-dir", results];
  const run = spawnSync(process.execPath, ["--import", register, kit, ...words], { encoding: "utf8", timeout: 120000 });
  const made = checks(results);
  rmSync(results, { recursive: true });
  console.log(JSON.stringify({
    scenario,
    status: run.status,
    passed: made.filter((check) => check.status === "SUCCESS").map((check) => check.id),
    failed: made.filter((check) => check.status === "FAILURE").map((check) => check.id),
    output: run.stdout + run.stderr,
  }));
}

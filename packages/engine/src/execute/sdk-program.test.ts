/** The executor with what users write: a DAG made with the SDK, bundled, run in a child. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROGRAM } from "@tradewind/sdk/program";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { ExecutorUnderTest } from "./testing/executor-under-test.ts";

const SOURCE = `
import { dag } from "@tradewind/sdk";

export default dag("testing", (d) => {
  const one = d.task("one", () => 20);
  d.task("two", { inputs: { one } }, ({ one }, ctx) => {
    ctx.log.info("adding", { one });
    return one + 1;
  });
  d.task("broken", { onFailure: (ctx) => console.log("callback ran") }, () => { throw new Error("typed wrong"); });
  d.task("secret", async (_, ctx) => { throw new Error("with " + (await ctx.connection("warehouse")).password); });
});
`;

test("a DAG of the SDK runs in a task process", async () => {
  await using under = await ExecutorUnderTest.start();
  const entry = join(under.dir, "dag.ts");
  const bundlePath = join(under.dir, "dag.mjs");
  await writeFile(entry, SOURCE);
  await build({
    entryPoints: [entry],
    outfile: bundlePath,
    bundle: true,
    platform: "node",
    format: "esm",
    conditions: ["source"],
    alias: { "@tradewind/sdk": fileURLToPath(new URL("../../../sdk/src/index.ts", import.meta.url)) },
    sourcemap: "inline",
    logLevel: "silent",
  });
  const bundle = { bundlePath, bundleHash: "sdk", conf: null };
  expect(await under.output("one", bundle)).toBe(20);
  const two = under.submit("two", { ...bundle, inputs: { one: { state: "success", value: 20 } } });
  expect(await under.ended(two.attempt)).toMatchObject({ kind: "success", output: 21 });
  const lines = await under.log(two.attempt);
  expect(lines).toContainEqual(
    expect.objectContaining({ source: "task", message: "adding", fields: { one: 20 } }),
  );

  const broken = under.submit("broken", bundle);
  const outcome = await under.ended(broken.attempt);
  expect(outcome).toMatchObject({
    kind: "failed",
    retry: true,
    callbackPending: false,
    error: { message: "typed wrong" },
  });
  const log = await readFile(broken.logPath, "utf8");
  expect(log).toContain("callback ran");
  // The source map leads to the author's file, not to the bundle.
  expect(log).toMatch(/dag\.ts:\d+/);

  expect(await under.run("secret", bundle)).toMatchObject({ kind: "failed", error: { message: "with ***" } });
});

test("both sides mean the same symbol", () => {
  expect(PROGRAM).toBe(Symbol.for("tradewind.program"));
});

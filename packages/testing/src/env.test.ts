import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { connection, dag, variable } from "@tradewind/sdk";
import { afterEach, expect, it } from "vitest";
import { runDag } from "./index.ts";

// Other test files share this process.
const before = process.env;
afterEach(() => {
  process.env = before;
});

const logged: string[] = [];
const shop = dag(
  "shop",
  {
    env: { SHOP_MODE: "batch", SHOP_HOST: connection("db").host, SHOP_KEY: variable("api_key") },
    onSuccess: () => void logged.push(`callback in ${process.env.SHOP_MODE}`),
  },
  (d) => {
    const look = async () => {
      await sleep(2);
      const { SHOP_MODE, SHOP_HOST, SHOP_KEY } = process.env;
      await sleep(2);
      return { mode: SHOP_MODE, host: SHOP_HOST, key: SHOP_KEY, same: process.env.SHOP_MODE === SHOP_MODE };
    };
    d.task("of_dag", look);
    d.task("of_task", { env: { SHOP_MODE: "own" } }, look);
    d.task("started", () =>
      execFileSync(process.execPath, ["-p", "process.env.SHOP_MODE"], { encoding: "utf8" }).trim(),
    );
    d.task("changes", () => {
      process.env.SHOP_LEFT = "x";
      delete process.env.SHOP_MODE;
      const { SHOP_LEFT } = process.env;
      return {
        left: SHOP_LEFT,
        has: "SHOP_MODE" in process.env,
        keys: Object.keys(process.env).includes("SHOP_MODE"),
      };
    });
  },
);
const options = { variables: { api_key: "k" }, connections: { db: { host: "h" } } };

it("gives each concurrent task its own environment without changing that of the test", async () => {
  const names = Object.keys(process.env);
  const run = await runDag(shop, options);
  expect(run.outputs).toEqual({
    of_dag: { mode: "batch", host: "h", key: "k", same: true },
    of_task: { mode: "own", host: "h", key: "k", same: true },
    started: "batch",
    changes: { left: "x", has: false, keys: false },
  });
  expect(logged).toEqual(["callback in batch"]);
  expect(Object.keys(process.env)).toEqual(names);
  expect(process.env.SHOP_MODE).toBeUndefined();
  expect("SHOP_LEFT" in process.env).toBe(false);
});

it("works if a test replaces process.env, before and after", async () => {
  for (const colour of ["blue", "red"]) {
    process.env = { ...process.env, SHOP_COLOUR: colour };
    const seen = dag("seen", { env: { SHOP_MODE: "batch" } }, (d) => {
      d.task("look", () => [process.env.SHOP_MODE ?? null, process.env.SHOP_COLOUR ?? null]);
    });
    expect((await runDag(seen)).outputs["look"]).toEqual(["batch", colour]);
  }
});

it("fails a task without a retry if a reference has no value", async () => {
  const lacking = dag("lacking", { env: { KEY: variable("nowhere") } }, (d) => {
    d.task("t", { retries: 3 }, () => 1);
  });
  const run = await runDag(lacking);
  expect(run.task("t")).toMatchObject({
    state: "failed",
    tries: 1,
    error: {
      code: "TW_VARIABLE_MISSING",
      message: expect.stringContaining("for dags test, with --variable"),
    },
  });
});

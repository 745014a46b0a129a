/** Logs of several machines in one store: each process has its own home. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { s3Server } from "../../../test/support/s3-server.ts";
import { SplitRig } from "../../../test/support/split-rig.ts";
import { resolveConfig } from "../../service/config.ts";
import { clean } from "../clean.ts";
import { probeLogStore } from "./log-store.ts";

const DAG = `
  import { dag, PollTrigger } from "tradewind";
  import { existsSync } from "node:fs";
  class Opened extends PollTrigger {
    static id = "test.opened";
    static interval = "100ms";
    async poll({ log }) { log.info("looking"); return existsSync(this.args.path) ? true : undefined; }
  }
  export default dag("travels", { onSuccess: (ctx) => ctx.log.info("told") }, (d) => {
    d.task("waits", async (_, ctx) => {
      ctx.log.info("departs");
      await ctx.until("opened", new Opened({ path: "@ROOT@/open" }));
      ctx.log.info("resumes");
    });
  });
`;
const RUNS = "/dags/travels/dagRuns";

let restore: () => void;

beforeAll(async () => {
  restore = (await s3Server(["logs"])).asEnvironment();
});

afterAll(() => restore());

it.each(["a folder", "a bucket"])(
  "shows the logs of all machines from %s, and deletes them",
  async (where) => {
    const shared = await mkdtemp(join(tmpdir(), "tradewind-shared-logs-"));
    onTestFinished(() => rm(shared, { recursive: true }));
    const settings = { TRADEWIND_LOG_STORE: where === "a bucket" ? "s3://logs/all" : `file:${shared}` };
    const rig = await SplitRig.open({ settings, homes: true });
    await rig.api();
    await rig.processor();
    await rig.scheduler();
    await rig.triggerer();
    await rig.saved({ "travels.ts": DAG.replace("@ROOT@", rig.root) }, ["travels"]);
    const { id, runId } = await rig.trigger("travels");
    await rig.taskIs(id, "waits", "deferred");
    const texts = async (path: string) => {
      const found: string[] = [];
      for (let token = "0", isLast = false; !isLast; ) {
        const page = await rig.call("GET", `${RUNS}/${runId}/${path}?token=${token}`);
        const content = page.content as { event: string }[];
        found.push(...content.map(({ event }) => event));
        isLast = page.continuation_token === null || content.length === 0;
        token = `${page.continuation_token}`;
      }
      return found;
    };
    const log = () => texts("taskInstances/waits/logs/1");
    await rig.until(async () => (await log()).includes("looking"), "the line of the trigger", 20_000);
    await writeFile(join(rig.root, "open"), "");
    await rig.runIs(id, "success");
    const lines = (await log()).filter((text) => !text.startsWith("Waiting for"));
    const own = ["departs", "looking", "resumes", "Succeeded."];
    expect([...new Set(lines.filter((text) => own.includes(text)))]).toEqual(own);
    await rig.until(async () => (await texts("logs")).includes("told"), "the line of the callback", 20_000);

    await rig.fetch("DELETE", `${RUNS}/${runId}`);
    const config = resolveConfig({ home: join(rig.root, "home-of-clean") }, settings);
    const what = { only: ["logs"] as const, olderThanMs: -60_000, batch: 100, dryRun: false };
    expect(await clean({ config, database: rig.db }, what)).toMatchObject({ logs: 1 });
    expect(await clean({ config, database: rig.db }, what)).toMatchObject({ logs: 0 });
    expect(await probeLogStore(config)).toBe(settings.TRADEWIND_LOG_STORE);
  },
  60_000,
);

/**
 * Random small DAGs as source text, for runs on a real scheduler: each has a group with retries, a map, a mapped group with
 * retries of its items, a setup with its teardown, a sub-DAG and a task that defers. Half of them have tasks that signals
 * start and stop, and a streaming task. Every task appends its begin and its end to one ledger file. Its end depends on its
 * run, its name and its try; once the run is calm, every task succeeds.
 */
import { type Random, randomOf } from "./random-dag.ts";

export interface EditedDag {
  readonly dagId: string;
  readonly source: string;
  readonly isDriven: boolean;
  /** The key of the signal that starts its tasks `sig` and `last_sig`. */
  readonly signal: string;
  /** The key of the signal that stops its tasks `sig` and `stream`. */
  readonly stopSignal: string;
}

/** Tasks that only a signal starts. */
export const STARTED = ["sig", "last_sig"] as const;

const RULES = ["allSuccess", "allSuccess", "allSuccess", "allDone", "noneFailed", "oneSuccess"];

/** The common beginning of the DAG files. */
export function preamble(root: string): string {
  return `
    import { dag, Operator, signal, skip, start, stop, TimeDeltaTrigger } from "tradewind";
    import { appendFileSync, existsSync } from "node:fs";
    const ROOT = ${JSON.stringify(root)};
    const tell = (ctx, what, more = {}) => appendFileSync(ROOT + "/ledger", JSON.stringify({
      run: ctx.run.id, task: ctx.taskId, index: ctx.mapIndex, try: ctx.tryNumber, what,
      at: performance.timeOrigin + performance.now(), ...more,
    }) + "\\n");
    const hash = (text) => [...text].reduce((sum, c) => (Math.imul(sum, 31) + c.charCodeAt(0)) >>> 0, 7) >>> 3;
    const chance = (ctx) => hash([ctx.run.id, ctx.taskId, ctx.mapIndex, ctx.tryNumber].join());
    const finish = async (ctx, value, more) => {
      const random = chance(ctx);
      await new Promise((go) => setTimeout(go, random % 40));
      const isCalm = existsSync(ROOT + "/calm-" + ctx.run.id);
      if (!isCalm && random % 5 === 0) { tell(ctx, "failed"); throw new Error("scripted"); }
      if (!isCalm && random % 11 === 0) { tell(ctx, "skipped"); return skip("scripted"); }
      tell(ctx, "success", more);
      return value;
    };
    const work = (_, ctx) => { tell(ctx, "begin"); return finish(ctx, 1); };
    const stream = async (_, ctx) => {
      tell(ctx, "begin");
      if (!ctx.abort.aborted) await new Promise((go) => ctx.abort.addEventListener("abort", go, { once: true }));
      tell(ctx, "success");
    };
    const listOf = (ctx) => Array.from({ length: (chance(ctx) >>> 4) % 4 }, (_, n) => n);
    class Waiting extends Operator {
      execute(ctx) { tell(ctx, "begin"); return this.defer({ trigger: new TimeDeltaTrigger({ delta: 20 }), method: "later" }); }
      later(ctx) { return finish(ctx, 1); }
    }
    export const child = dag("child", (d) => { d.task("inside", async () => { await new Promise((go) => setTimeout(go, 30)); }); });
  `;
}

export function editedDag(seed: number): EditedDag {
  const random = randomOf(seed);
  const dagId = `edited_${seed}`;
  const isDriven = random.chance(0.5);
  const known: string[] = [];
  const lines: string[] = [];
  const add = (name: string, line: (options: string) => string, { isMapped = false } = {}) => {
    lines.push(line(optionsOf(random, known, isMapped)));
    known.push(name);
  };
  const parts: (() => void)[] = [
    () => add("a", (o) => `const a = d.task("a", { ${o} }, work);`),
    () => {
      add(
        "list",
        (o) => `const list = d.task("list", { ${o} }, (_, ctx) => {
        tell(ctx, "begin");
        const items = listOf(ctx);
        return finish(ctx, items, { length: items.length });
      });`,
      );
      add("each", (o) => `const each = d.map("each", { over: list, ${o} }, (_n, _, ctx) => work(_, ctx));`, {
        isMapped: true,
      });
      lines.push(`const items = d.mapGroup("items", { over: list, retries: 1, retryDelay: 0 }, (g) => {
        const one = g.task("one", work);
        g.task("two", { after: one }, work);
      });`);
      known.push("items");
    },
    () => {
      lines.push(`const g = d.group("g", { retries: 1, retryDelay: 0 }, (g) => {
        const first = g.task("first", work);
        g.task("second", { after: first }, work);
      });`);
      known.push("g");
    },
    () => {
      lines.push(`const make = d.setup("make", { ${optionsOf(random, known, true)} }, work);
        const use = d.task("use", { after: make }, work);
        d.teardown("drop", { of: make, after: use }, (_made, _, ctx) => work(_, ctx));`);
      known.push("use");
    },
    () => add("sub", (o) => `const sub = d.dag("sub", child, { ${o} });`),
    () => add("wait", (o) => `const wait = d.operator("wait", new Waiting({}), { ${o} });`),
  ];
  for (const part of random.shuffled(parts)) part();
  if (isDriven) {
    const go = `start(signal("go-${dagId}"))`;
    const off = `stop(signal("off-${dagId}"))`;
    const before = () => [random.one(known), random.one(known)].join();
    lines.push(
      `const sig = d.task("sig", { after: [${before()}], rule: ${JSON.stringify(random.one(RULES))}, on: [${go}, ${off}] }, work);`,
      `d.task("last_sig", { after: [sig, ${before()}], on: [${go}] }, work);`,
      `d.task("after_sig", { after: sig, rule: "noneFailed" }, work);`,
      `d.task("stream", { lifetime: "streaming", after: [${before()}], on: [${off}] }, stream);`,
    );
  }
  lines.push(
    `d.task("end", { after: [${known.join()}], rule: ${JSON.stringify(random.one(RULES))} }, work);`,
  );
  return {
    dagId,
    source: `export const ${dagId} = dag("${dagId}", (d) => {\n${lines.join("\n")}\n});`,
    isDriven,
    signal: `go-${dagId}`,
    stopSignal: `off-${dagId}`,
  };
}

function optionsOf(random: Random, known: readonly string[], isPlain: boolean): string {
  const after = known.filter(() => random.chance(0.4));
  const options = [`after: [${after.join()}]`];
  if (!isPlain && after.length > 0) options.push(`rule: ${JSON.stringify(random.one(RULES))}`);
  if (!isPlain && random.chance(0.3)) options.push("retries: 1, retryDelay: 0");
  return options.join(", ");
}

/**
 * The DAGs of the conformance suite, as files of a DAG folder. They do not name an executor: the same code runs everywhere.
 * Tasks report to a witness outside of the engine, whose address is in the conf of their run.
 */

const WITNESS = `
/** A note of a task or a callback. */
async function tell(ctx: any, what: string, value: unknown = null): Promise<void> {
  const { attempt = null, params, run, taskId, tryNumber } = ctx;
  const note = { run: run.id, task: taskId, attempt, tryNumber, what, value, pid: process.pid };
  await fetch(params.witness + "/notes", { method: "POST", body: JSON.stringify(note) });
}

/** Waits until the suite opens the gate of the run. If the process ends before that, the witness sees it. */
async function gate(ctx: any): Promise<void> {
  await tell(ctx, "start");
  try {
    const place = "/gates/" + ctx.run.id + "?attempt=" + ctx.attempt;
    await fetch(ctx.params.witness + place, { signal: ctx.abort });
  } catch (error) {
    if (ctx.abort.aborted) await tell(ctx, "abort");
    throw error;
  }
  await tell(ctx, "end");
}
`;

/** File names and their texts. */
export const EXAMPLE_DAGS: Readonly<Record<string, string>> = {
  "conformance.ts": `import { dag, fail, Operator, signal, skip, TimeDeltaTrigger } from "tradewind";
${WITNESS}
export const example = dag("conformance_example", { maxActiveRuns: 100 }, (d) => {
  const numbers = d.task("extract", (_, ctx) => tell(ctx, "start").then(() => [1, 2, 3]));
  const doubled = d.map("double", { over: numbers }, (n) => 2 * n);
  const sum = d.task("sum", { inputs: { doubled } }, ({ doubled }) => doubled.reduce((all, n) => all + n, 0));
  d.task("report", { inputs: { sum } }, async ({ sum }, ctx) => {
    await tell(ctx, "start");
    return { sum, name: (ctx.params as any).name };
  });
});

export const held = dag("conformance_held", { maxActiveRuns: 100 }, (d) => {
  const first = d.task("held", { grace: "1s" }, async (_, ctx) => {
    await gate(ctx);
    return ctx.attempt;
  });
  d.task("after", { inputs: { first } }, ({ first }) => first);
});

export const failing = dag("conformance_failing", { maxActiveRuns: 100 }, (d) => {
  const again = d.task("again", { retries: 1, retryDelay: "50ms" }, async (_, ctx) => {
    await tell(ctx, "start");
    throw new Error("failed as it should, try " + ctx.tryNumber);
  });
  d.task("behind", { after: again }, () => 1);
  d.task("at_once", { retries: 3 }, (_, ctx) => tell(ctx, "start").then(() => fail("not worth a retry")));
  d.task("skipped", () => skip("nothing to do"));
  d.task("exit", { retries: 0 }, () => process.exit(3));
});

export const limited = dag("conformance_limited", { maxActiveRuns: 100 }, (d) => {
  d.task("slow", { timeout: "1s", grace: "500ms" }, (_, ctx) => gate(ctx));
  d.task("greedy", { memory: "200mb" }, async (_, ctx) => {
    const kept: Buffer[] = [];
    for (;;) {
      kept.push(Buffer.alloc(20 * 1024 * 1024, kept.length));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  d.task("modest", () => 1);
});

export const logged = dag("conformance_logged", { maxActiveRuns: 100 }, (d) => {
  d.task("speak", async (_, ctx) => {
    ctx.log.info("first", { number: 1 });
    console.log("second");
    console.error("third");
    await gate(ctx);
    ctx.log.warn("fourth");
  });
});

export const waiting = dag("conformance_waiting", { maxActiveRuns: 100 }, (d) => {
  d.task("wait", async (_, ctx) => {
    const made = await ctx.step("make", async () => {
      await tell(ctx, "made");
      return { number: 7 };
    });
    await tell(ctx, "start");
    await ctx.until("pause", new TimeDeltaTrigger({ delta: "300ms" }));
    await tell(ctx, "resumed");
    return made.number;
  });
});

export const large = dag("conformance_large", { maxActiveRuns: 100 }, (d) => {
  const text = d.task("make", () => "0123456789".repeat(3_000_000));
  d.task("read", { inputs: { text } }, ({ text }) => ({ length: text.length, end: text.slice(-3) }));
});

export const told = dag("conformance_told", { maxActiveRuns: 100, onFailure: (ctx) => tell(ctx, "dag failed") }, (d) => {
  d.task("fails", { onFailure: (ctx) => tell(ctx, "task failed", ctx.error?.message) }, () => {
    throw new Error("as it should");
  });
});

class Judge extends Operator<Record<string, never>, null> {
  constructor() {
    super({});
    this.setSignal(signal<any>("conformance/score"));
  }
  async execute(ctx: any) {
    await tell(ctx, "judged");
    return null;
  }
  onSignal({ value }: { value: any }) {
    return value === "good" ? ("START" as const) : ("NONE" as const);
  }
}
export const judging = dag("conformance_judging", { maxActiveRuns: 100, stop: signal("conformance/end") }, (d) => {
  d.operator("judge", new Judge());
});
`,
};

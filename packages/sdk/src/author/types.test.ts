import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  type AnyParams,
  all,
  any,
  type Condition,
  conf,
  type Dag,
  type DagBuilder,
  DateTimeTrigger,
  dag,
  type EventParams,
  type FileEvent,
  FileSensor,
  FileTrigger,
  type Group,
  type IncomingSignal,
  type Json,
  Operator,
  type Output,
  on,
  Sensor,
  type Settled,
  type Signal,
  SignalAction,
  type SignalEvent,
  type SignalParams,
  signal,
  skip,
  start,
  type TaskContext,
} from "../index.ts";

interface Tree {
  name: string;
  children: Tree[];
}

class Count extends Operator<{ table: string }, number> {
  override async execute(ctx: TaskContext) {
    expectTypeOf(this.args).toEqualTypeOf<{ table: string }>();
    expectTypeOf(ctx.params).toEqualTypeOf<AnyParams>();
    return this.args.table === "" ? skip("no table") : 1;
  }
}

class Join extends Operator<void, string, { left: string; right: readonly number[] }> {
  override execute(_ctx: TaskContext, { left, right }: { left: string; right: readonly number[] }) {
    return `${left}${right.length}`;
  }
}

test("infers the output from the handler", () => {
  dag("types", (d) => {
    expectTypeOf(d.task("number", () => 42)).toEqualTypeOf<Output<number>>();
    expectTypeOf(d.task("text", async () => "a")).toEqualTypeOf<Output<string>>();
    expectTypeOf(d.task("object", () => ({ a: 1, list: ["x"] }))).toEqualTypeOf<
      Output<{ a: number; list: string[] }>
    >();
    expectTypeOf(d.task("nothing", async () => {})).toEqualTypeOf<Output<void>>();
    expectTypeOf(d.task("recursive", (): Tree => ({ name: "", children: [] }))).toEqualTypeOf<Output<Tree>>();
    expectTypeOf(d.task("optional", (): { a?: string } => ({}))).toEqualTypeOf<Output<{ a?: string }>>();
    expectTypeOf(d.task("json", (): Json => null)).toEqualTypeOf<Output<Json>>();
    expectTypeOf(d.task("maybe", (): string | undefined => undefined)).toEqualTypeOf<
      Output<string | undefined>
    >();
    expectTypeOf(d.task("unknown", (): unknown => 1)).toEqualTypeOf<Output<unknown>>();
    expectTypeOf(d.task("any", () => JSON.parse("1"))).toBeAny;
    expectTypeOf(d.task("controlled", (_, ctx) => (ctx.tryNumber > 1 ? skip("later") : 1))).toEqualTypeOf<
      Output<number>
    >();
  });
});

test("infers an input from its upstream, settled under other rules", () => {
  dag("inputs", (d) => {
    const rows = d.task("rows", () => [{ id: 1 }]);
    const name = d.task("name", async () => "x");
    d.task("plain", { inputs: { rows, name } }, (inputs) => {
      expectTypeOf(inputs).toEqualTypeOf<{ readonly rows: { id: number }[]; readonly name: string }>();
    });
    d.task("settled", { inputs: { name }, rule: "allDone" }, ({ name }) => {
      expectTypeOf(name).toEqualTypeOf<Settled<string>>();
      if (name.state === "success") expectTypeOf(name.value).toEqualTypeOf<string>();
    });
    d.task("noneFailed", { inputs: { name }, rule: "noneFailed" }, ({ name }) => {
      expectTypeOf(name).toEqualTypeOf<Settled<string>>();
    });
    d.task("none", { retries: 1 }, (inputs) => {
      expectTypeOf(inputs).toEqualTypeOf<Readonly<Record<never, never>>>();
    });
    d.branch("branch", { inputs: { rows } }, ({ rows }) => (rows.length > 0 ? [] : null));
    d.shortCircuit("short", { inputs: { rows }, respectRules: true }, ({ rows }) => rows.length);
  });
});

test("infers the output and the required inputs of an operator", () => {
  dag("operators", (d) => {
    const table = d.task("table", () => "sales");
    const numbers = d.task("numbers", () => [1, 2]);
    expectTypeOf(d.operator("count", new Count({ table: "sales" }), { retries: 3 })).toEqualTypeOf<
      Output<number>
    >();
    expectTypeOf(d.operator("join", new Join(), { inputs: { left: table, right: numbers } })).toEqualTypeOf<
      Output<string>
    >();
  });
});

test("infers params from the schema's output and conf from its input", () => {
  const defined = dag("params", { params: z.object({ region: z.string().default("eu") }) }, (d) => {
    d.task("read", (_, ctx) => {
      expectTypeOf(ctx.params).toEqualTypeOf<{ region: string }>();
      expectTypeOf(ctx.run.logicalDate).toEqualTypeOf<Date | null>();
    });
    d.task(
      "note",
      { onFailure: (ctx) => expectTypeOf(ctx.params).toEqualTypeOf<{ region: string } | null>() },
      () => 1,
    );
    part(d);
  });
  expectTypeOf(defined).toEqualTypeOf<Dag<{ region?: string | undefined }, null>>();
  dag("no_params", (d) => {
    d.task("read", (_, ctx) => expectTypeOf(ctx.params).toEqualTypeOf<AnyParams>() && 1);
  });
});

/** A part of a DAG in a function of its own, for DAGs with any params. */
function part(d: DagBuilder): Output<number> {
  return d.task("part", () => 1);
}

test("infers the result of a group from its build function", () => {
  dag("groups", (d) => {
    const group = d.group("g", (g) => ({ inner: g.task("inner", () => 1) }));
    expectTypeOf(group).toEqualTypeOf<Group<{ inner: Output<number> }>>();
    d.task("use", { inputs: { inner: group.result.inner }, after: group }, ({ inner }) => inner + 1);
  });
});

test("infers ctx.output from the handle", () => {
  dag("context", (d) => {
    const one = d.task("one", () => 1);
    d.task("two", { after: [one] }, async (_, ctx) => {
      expectTypeOf(await ctx.output(one)).toEqualTypeOf<number | undefined>();
      expectTypeOf(await ctx.output("one")).toEqualTypeOf<Json | undefined>();
      expectTypeOf(await ctx.variable("v")).toEqualTypeOf<string>();
    });
  });
});

class Deferring extends Operator<{ path: string }, number, { rows: number }> {
  override async execute(ctx: TaskContext, { rows }: { rows: number }) {
    if (rows === 0) return skip("no rows");
    if (ctx.tryNumber > 1) return rows;
    return this.defer({
      trigger: new FileTrigger(this.args),
      method: "found",
      kwargs: { rows },
      timeout: "1h",
    });
  }
  found(_ctx: TaskContext, file: FileEvent, { rows }: { rows: number }) {
    return file.size > 0
      ? file.size + rows
      : this.defer({ trigger: new DateTimeTrigger({ moment: new Date() }), method: "later" });
  }
  async later(_ctx: TaskContext, moment: string) {
    return moment.length;
  }
}

class Looking extends Sensor<{ table: string }, number> {
  override async poke() {
    expectTypeOf(this.args.table).toEqualTypeOf<string>();
    return this.args.table.length > 0 && 1;
  }
}

class Alone extends Sensor {
  override poke() {
    return true as const;
  }
}

test("infers the output of an operator that defers", () => {
  dag("deferring", (d) => {
    const rows = d.task("rows", () => 1);
    expectTypeOf(d.operator("x", new Deferring({ path: "/a" }), { inputs: { rows } })).toEqualTypeOf<
      Output<number>
    >();
  });
});

test("infers the outputs of sensors and triggers", () => {
  dag("waiting", (d) => {
    expectTypeOf(d.operator("looking", new Looking({ table: "x", mode: "reschedule" }))).toEqualTypeOf<
      Output<number>
    >();
    expectTypeOf(d.operator("alone", new Alone())).toEqualTypeOf<Output<true>>();
    expectTypeOf(d.operator("soft", new Alone({ softFail: true }))).toEqualTypeOf<Output<true>>();
    expectTypeOf(d.operator("file", new FileSensor({ path: "/a", timeout: "1h" }))).toEqualTypeOf<
      Output<FileEvent>
    >();
    expectTypeOf(d.trigger("trigger", new FileTrigger({ path: "/a" }))).toEqualTypeOf<Output<FileEvent>>();
  });
});

test("infers steps from their functions and triggers", () => {
  dag("steps", (d) => {
    d.task("t", async (_, ctx) => {
      expectTypeOf(ctx.step("a", async () => ({ id: 1 }))).resolves.toEqualTypeOf<{ id: number }>();
      expectTypeOf(ctx.step("b", (): string | undefined => "")).resolves.toEqualTypeOf<string | null>();
      expectTypeOf(ctx.step("c", () => (ctx.tryNumber > 1 ? skip() : 1))).resolves.toEqualTypeOf<number>();
      expectTypeOf(ctx.until("d", new FileTrigger({ path: "/a" }))).resolves.toEqualTypeOf<FileEvent>();
      const both = ctx.until("e", {
        f: new FileTrigger({ path: "/a" }),
        m: new DateTimeTrigger({ moment: "2027-01-01" }),
      });
      expectTypeOf(both).resolves.toEqualTypeOf<{ readonly f: FileEvent; readonly m: string }>();
    });
  });
});

test("infers the params of a DAG that is scheduled on events, unless it has a schema", () => {
  const schedule = on(new FileTrigger({ path: "/in/*" }));
  const plain = dag(
    "on_file",
    { schedule, onFailure: (ctx) => ctx.params?.event?.size, maxActiveRuns: 1 },
    (d) => {
      d.task("t", (_, ctx) => expectTypeOf(ctx.params).toEqualTypeOf<EventParams<FileEvent>>() && 1);
    },
  );
  expectTypeOf(plain).toEqualTypeOf<Dag<EventParams<FileEvent>, null>>();
  dag("own_params", { schedule, params: z.object({ event: z.object({ path: z.string() }) }) }, (d) => {
    d.task("t", (_, ctx) => expectTypeOf(ctx.params).toEqualTypeOf<{ event: { path: string } }>() && 1);
  });
});

test("types a signal for senders, waits and schedules", () => {
  const sold = signal(
    "sold",
    z.object({ id: z.string(), day: z.coerce.date(), tags: z.array(z.string()).default([]) }),
  );
  const tick = signal("tick");
  const load = signal<{ percent: number }>("load", undefined, { namespace: "machines" });
  type Sold = { id: string; day: Date; tags: string[] };
  type SoldSent = { id: string; day: unknown; tags?: string[] | undefined };
  expectTypeOf(sold).toEqualTypeOf<Signal<Sold, SoldSent>>();
  expectTypeOf(tick).toEqualTypeOf<Signal<Json>>();
  expectTypeOf(load).toEqualTypeOf<Signal<{ percent: number }>>();
  dag("signals", (d) => {
    const rows = d.task("rows", () => 1);
    d.task(
      "t",
      { on: [start(all(sold.where({ id: conf("id"), tags: ["x"] }), rows, any(tick)))] },
      async (_, ctx) => {
        expectTypeOf(ctx.send(sold, { id: "", day: "2027-01-01" })).resolves.toEqualTypeOf<{
          readonly version: number;
        }>();
        expectTypeOf(ctx.send(load, { percent: 1 }, { onSuccess: true })).resolves.toEqualTypeOf<void>();
        await ctx.send(tick);
        await ctx.send(tick, { any: ["json"] });
        expectTypeOf(ctx.until("a", sold)).resolves.toEqualTypeOf<SignalEvent<Sold>>();
        expectTypeOf(ctx.until("b", load.equals({ percent: 1 }).inRun())).resolves.toEqualTypeOf<
          SignalEvent<{ percent: number }>
        >();
        const both = ctx.until("c", { load, file: new FileTrigger({ path: "/a" }) });
        expectTypeOf(both).resolves.toEqualTypeOf<{
          readonly load: SignalEvent<{ percent: number }>;
          readonly file: FileEvent;
        }>();
        const file = new FileTrigger({ path: "/a" });
        const byName = await ctx.until("d", any({ sold, file }));
        expectTypeOf(byName).toEqualTypeOf<
          | { readonly name: "sold"; readonly event: SignalEvent<Sold> }
          | { readonly name: "file"; readonly event: FileEvent }
        >();
        if (byName.name === "file") expectTypeOf(byName.event).toEqualTypeOf<FileEvent>();
        const { index, event } = await ctx.until("e", any(file, sold));
        if (index === 0) expectTypeOf(event).toEqualTypeOf<FileEvent>();
        else expectTypeOf(event).toEqualTypeOf<SignalEvent<Sold>>();
        const signals = await ctx.until("f", any(load, sold));
        expectTypeOf(signals.index).toEqualTypeOf<0 | 1>();
        if (signals.index === 1) expectTypeOf(signals.event).toEqualTypeOf<SignalEvent<Sold>>();
        const nested = await ctx.until("g", { first: any({ sold, file }), load });
        expectTypeOf(nested.first).toEqualTypeOf(byName);
      },
    );
    const node = d.trigger("first", any({ load, file: new FileTrigger({ path: "/a" }) }));
    expectTypeOf(node).toEqualTypeOf<
      Output<
        | { readonly name: "load"; readonly event: SignalEvent<{ percent: number }> }
        | { readonly name: "file"; readonly event: FileEvent }
      >
    >();
    expectTypeOf(d.trigger("node", load)).toEqualTypeOf<Output<SignalEvent<{ percent: number }>>>();
  });
  expectTypeOf(any(load, tick, sold.equals({ id: "", day: 1 }))).toExtend<
    Condition<{ percent: number } | Json | Sold>
  >();
  expectTypeOf(any(load, all(tick, sold))).toEqualTypeOf<Condition<{ percent: number } | Json | Sold>>();
  const plain = dag("on_signal", { schedule: on(sold.where({ id: "x" })), maxActiveRuns: 1 }, (d) => {
    d.task("t", (_, ctx) => expectTypeOf(ctx.params).toEqualTypeOf<SignalParams<Sold>>() && 1);
  });
  expectTypeOf(plain).toEqualTypeOf<Dag<SignalParams<Sold>, null>>();
  dag("own_params", { schedule: on(any(load, tick)), params: z.object({ region: z.string() }) }, (d) => {
    d.task("t", (_, ctx) => expectTypeOf(ctx.params).toEqualTypeOf<{ region: string }>() && 1);
  });
});

class Reacting extends Operator<{ least: number }, number> {
  static readonly scored = signal("scored", z.object({ score: z.number() }));
  override execute() {
    return 1;
  }
  override onSignal(heard: IncomingSignal): SignalAction {
    if (!Reacting.scored.is(heard)) return "NONE";
    expectTypeOf(heard.value).toEqualTypeOf<{ score: number }>();
    return heard.value.score > this.args.least ? SignalAction.START : SignalAction.STOP;
  }
}

test("infers the output of an operator with onSignal", () => {
  dag("reacting", (d) => {
    expectTypeOf(d.operator("x", new Reacting({ least: 1 }))).toEqualTypeOf<Output<number>>();
  });
});

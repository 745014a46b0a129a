import { beforeAll, expect, test } from "vitest";
import { type Compiled, compile } from "./compile.ts";

/** Code that the compiler must reject, and the message that the author reads. */
const refusals: Record<string, { code: string; says: RegExp }> = {
  dateOutput: {
    code: 'd.task("x", () => new Date());',
    says: /NotJson<"output is a Date; return date\.toISOString\(\) instead">/,
  },
  unknownOutput: {
    code: 'd.task("x", async () => (await fetch("http://x")).json() as Promise<unknown>);',
    says: /NotJson<"output is unknown; give it a type that is JSON/,
  },
  deepDateOutput: {
    code: 'd.task("x", { retries: 1 }, async () => ({ rows: [{ id: 1, at: new Date() }] }));',
    says: /NotJson<"output\.rows\[\]\.at is a Date; return date\.toISOString\(\) instead">/,
  },
  bigintOutput: {
    code: 'd.task("x", () => ({ n: 1n }));',
    says: /NotJson<"output\.n is a bigint; return String/,
  },
  mapOutput: {
    code: 'd.task("x", () => new Map([["a", 1]]));',
    says: /NotJson<"output is a Map or Set; return an array or a plain object instead">/,
  },
  functionOutput: {
    code: 'd.task("x", () => ({ f: () => 1 }));',
    says: /NotJson<"output\.f is a function; return plain/,
  },
  promiseInOutput: {
    code: 'd.task("x", () => ({ p: Promise.resolve(1) }));',
    says: /"output\.p is a Promise; await it first"/,
  },
  binaryOutput: {
    code: 'd.task("x", () => new Uint8Array(1));',
    says: /"output is binary; store it elsewhere/,
  },
  partlyBadUnion: {
    code: 'd.task("x", (_, ctx) => ctx.tryNumber > 1 ? { ok: true as const } : { ok: false as const, at: new Date() });',
    says: /NotJson<"output\.at is a Date;/,
  },
  interfaceWithDate: {
    code: 'interface Row { id: number; when: { at: Date } } d.task("x", (): Row[] => []);',
    says: /NotJson<"output\[\]\.when\.at is a Date;/,
  },
  operatorWithDate: {
    code: 'class X extends Operator<void, Date> { override execute() { return new Date(); } } d.operator("x", new X());',
    says: /NotJson<"output is a Date;/,
  },
  undeclaredInput: {
    code: 'd.task("x", { inputs: { rows } }, ({ row }) => row);',
    says: /Property 'row' does not exist on type 'InputValues<{ rows: Output<string\[\]>; }, "allSuccess">'/,
  },
  wrongInputType: {
    code: 'd.task("x", { inputs: { rows } }, ({ rows }) => rows.toFixed());',
    says: /Property 'toFixed' does not exist on type 'string\[\]'/,
  },
  inputNotAHandle: {
    code: 'd.task("x", { inputs: { rows: ["a"] } }, ({ rows }) => rows);',
    says: /not assignable to type 'AnyOutput'/,
  },
  groupAsInput: {
    code: 'const g = d.group("g", (g) => { g.task("y", () => 1); }); d.task("x", { inputs: { g } }, () => 1);',
    says: /'Group<void>' is not assignable to type 'AnyOutput'/,
  },
  settledWithoutLooking: {
    code: 'd.task("x", { inputs: { rows }, rule: "allDone" }, ({ rows }) => rows.value);',
    says: /Property 'value' does not exist on type 'Settled<string\[\]>'/,
  },
  ruleNotKnown: {
    code: 'declare const rule: "allSuccess" | "allDone"; d.task("x", { inputs: { rows }, rule }, ({ rows }) => rows.length);',
    says: /RuleNotKnown<"write the rule as a literal: it decides the type of the inputs">/,
  },
  unknownRule: {
    code: 'd.task("x", { rule: "allDne" }, () => 1);',
    says: /Type '"allDne"' is not assignable to type 'TriggerRule \| undefined'. Did you mean '"allDone"'/,
  },
  unknownOption: { code: 'd.task("x", { retrys: 3 }, () => 1);', says: /'retrys' does not exist in type/ },
  unknownDagOption: {
    code: 'dag("y", { shedule: null }, () => {});',
    says: /'shedule' does not exist in type/,
  },
  ruleInDefaults: {
    code: 'dag("y", { defaults: { rule: "allDone" } }, () => {});',
    says: /'rule' does not exist in type 'TaskDefaults/,
  },
  badDuration: {
    code: 'd.task("x", { timeout: "5 minutes" }, () => 1);',
    says: /Type '"5 minutes"' is not assignable to type 'Duration \| undefined'/,
  },
  badMemory: {
    code: 'd.task("x", { memory: "much" }, () => 1);',
    says: /not assignable to type 'MemorySize \| undefined'/,
  },
  useBeforeDefinition: {
    code: 'const a = d.task("a", { after: b }, () => 1); const b = d.task("b", { after: a }, () => 1);',
    says: /Block-scoped variable 'b' used before its declaration/,
  },
  operatorArguments: {
    code: 'new Count({ tabel: "x" });',
    says: /'tabel' does not exist in type '{ table: string; }'/,
  },
  operatorInputMissing: { code: 'd.operator("x", new Join());', says: /Expected 3 arguments, but got 2/ },
  operatorInputType: {
    code: 'd.operator("x", new Join(), { inputs: { left: rows } });',
    says: /Type 'Output<string\[\]>' is not assignable to type 'Output<string>'/,
  },
  operatorInputName: {
    code: 'const left = d.task("l", () => "a"); d.operator("x", new Join(), { inputs: { left, rigth: left } });',
    says: /'rigth' does not exist in type 'HandlesFor<{ left: string; }, "allSuccess">'/,
  },
  operatorNotAnOperator: {
    code: 'd.operator("x", () => 1);',
    says: /not assignable to parameter of type 'Operator</,
  },
  unknownParam: {
    code: 'd.task("x", (_, ctx) => ctx.params.regoin);',
    says: /Property 'regoin' does not exist on type '{ region: string; }'/,
  },
  paramsNotASchema: {
    code: 'dag("y", { params: { region: "eu" } }, () => {});',
    says: /'region' does not exist in type 'StandardSchemaV1/,
  },
  branchToNumber: {
    code: 'd.branch("x", () => 3);',
    says: /Type 'number' is not assignable to type 'BranchResult'/,
  },
  deferToUnknownMethod: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "dnoe" });',
      "done() { return 1; }",
    ),
    says: /Type '"dnoe"' is not assignable to type '"args" \| "defer" \| "done"/,
  },
  deferredMethodTakesOtherEvent: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "done" });',
      "done(_ctx: TaskContext, event: { size: number }) { return event.size; }",
    ),
    says: /WrongDeferral<"method \\"done\\" takes another event than its trigger fires with", { event: { rows: number; }/,
  },
  deferredMethodTakesOtherKwargs: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "done", kwargs: { job: 1 } });',
      "done(_ctx: TaskContext, _event: unknown, kwargs: { job: string }) { return kwargs.job.length; }",
    ),
    says: /WrongDeferral<"method \\"done\\" takes other kwargs than it is given", { given: { job: number; }/,
  },
  deferredMethodLacksKwargs: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "done" });',
      "done(_ctx: TaskContext, _event: unknown, kwargs: { job: string }) { return kwargs.job.length; }",
    ),
    says: /WrongDeferral<"method \\"done\\" takes other kwargs than it is given", { given: Record<never, never>/,
  },
  deferredMethodReturnsOther: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "done" });',
      'done() { return "x"; }',
    ),
    says: /WrongDeferral<"method \\"done\\" returns another type than the operator's result", { returned: string; result: number; }>/,
  },
  deferredKwargsNotJson: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "done", kwargs: { at: new Date() } });',
      "done(_ctx: TaskContext, _event: unknown, _kwargs: { at: Date }) { return 1; }",
    ),
    says: /NotJson<"kwargs\.at is a Date;/,
  },
  secondDeferralWrong: {
    code: operator(
      'return this.defer({ trigger: new JobDone({ job: "" }), method: "one" });',
      `async one() { return this.defer({ trigger: new JobDone({ job: "" }), method: "two" }); }
       two(_ctx: TaskContext, event: string) { return event.length; }`,
    ),
    says: /WrongDeferral<"method \\"two\\" takes another event than its trigger fires with"/,
  },
  startFromWrongEvent: {
    code: operator("return 1;", 'startFrom() { return { trigger: new JobDone({ job: "" }) }; }'),
    says: /WrongDeferral<"startFrom without a method: the event must have the type of the result", { event: { rows: number; }; result: number; }>/,
  },
  triggerArguments: {
    code: 'new JobDone({ jbo: "" });',
    says: /'jbo' does not exist in type '{ job: string; }'/,
  },
  triggerOptions: {
    code: "new FileTrigger({ pth: 1 });",
    says: /'pth' does not exist in type 'FileOptions'/,
  },
  whichRunMissing: {
    code: 'new DagRunTrigger({ dagId: "x" });',
    says: /Argument of type '{ dagId: string; }' is not assignable to parameter of type 'DagRunOptions'/,
  },
  pollFindsOther: {
    code: 'class X extends PollTrigger<void, number> { static id = "x"; override poll() { return "a"; } } void X;',
    says: /Type 'string' is not assignable to type 'Promise<Polled<number>> \| Polled<number>'/,
  },
  eventNotJson: {
    code: 'd.trigger("x", new Dated());',
    says: /NotJson<"event\.at is a Date;/,
  },
  untilEventNotJson: {
    code: 'd.task("x", async (_, ctx) => { await ctx.until("a", new Dated()); });',
    says: /NotJson<"event\.at is a Date;/,
  },
  untilNotATrigger: {
    code: 'd.task("x", async (_, ctx) => { await ctx.until("a", { b: 1 }); });',
    says: /'b' does not exist in type 'Waitable<{ b: number; }>'/,
  },
  jointEventNotJson: {
    code: "void all({ a: new Dated() });",
    says: /NotJson<"event\.at is a Date;/,
  },
  untilEventType: {
    code: 'd.task("x", async (_, ctx) => (await ctx.until("a", new JobDone({ job: "" }))).size);',
    says: /Property 'size' does not exist on type '{ rows: number; }'/,
  },
  jointEventName: {
    code: 'd.task("x", async (_, ctx) => (await ctx.until("a", { job: new JobDone({ job: "" }) })).jbo);',
    says: /Property 'jbo' does not exist on type 'ReceivedOf</,
  },
  onceNotJson: {
    code: 'd.task("x", async (_, ctx) => { await ctx.step("a", () => ({ at: new Date() })); });',
    says: /NotJson<"output\.at is a Date;/,
  },
  sensorOptions: {
    code: 'new FileSensor({ path: "/a", mode: "pok" });',
    says: /Type '"pok"' is not assignable to type '"defer" \| "poke" \| "reschedule" \| undefined'/,
  },
  sensorFindsOther: {
    code: 'class X extends Sensor<void, number> { override async poke() { return "a"; } } void X;',
    says: /Type 'string' is not assignable to type 'Found<number>'/,
  },
  signalPayload: {
    code: 'd.task("x", async (_, ctx) => { await ctx.send(sold, { id: 7, units: 1 }); });',
    says: /Type 'number' is not assignable to type 'string'/,
  },
  signalPayloadOnSuccess: {
    code: 'd.task("x", async (_, ctx) => { await ctx.send(sold, { id: "7" }, { onSuccess: true }); });',
    says: /Property 'units' is missing in type '{ id: string; }'/,
  },
  signalWithoutPayload: {
    code: 'd.task("x", async (_, ctx) => { await ctx.send(sold); });',
    says: /Expected 2-3 arguments, but got 1|Expected 2 arguments, but got 1/,
  },
  signalLeafSent: {
    code: 'd.task("x", async (_, ctx) => { await ctx.send(sold.where({ id: "7" }), { id: "7", units: 1 }); });',
    says: /'SignalLeaf<{ id: string; units: number; }, { id: string; units: number; }>' is missing the following properties from type 'Signal</,
  },
  signalValueNotJson: {
    code: 'void signal("x", z.object({ at: z.date() }));',
    says: /NotJson<"value\.at is a Date;/,
  },
  signalEqualsOther: {
    code: "void sold.equals({ id: 7, units: 1 });",
    says: /Type 'number' is not assignable to type 'string'/,
  },
  signalEqualsWord: {
    code: 'void signal("mode", z.enum(["on", "off"])).equals("of");',
    says: /Argument of type '"of"' is not assignable to parameter of type '"(?:on|off)" \| "o/,
  },
  signalWhereKey: {
    code: 'void sold.where({ idd: "7" });',
    says: /'idd' does not exist in type/,
  },
  signalWhereType: {
    code: "void sold.where({ units: true });",
    says: /Type 'true' is not assignable to type 'number \| ConfReference \| undefined'/,
  },
  signalWhereDeepKey: {
    code: 'void signal("x", z.object({ a: z.object({ b: z.number() }) })).where({ a: { c: 1 } });',
    says: /'c' does not exist in type/,
  },
  untilSignalType: {
    code: 'd.task("x", async (_, ctx) => (await ctx.until("a", sold)).value.price);',
    says: /Property 'price' does not exist on type '{ id: string; units: number; }'/,
  },
  ruleOfATrigger: {
    code: 'd.task("x", { on: [start(new JobDone({ job: "" }))] }, () => 1);',
    says: /Argument of type 'JobDone' is not assignable to parameter of type 'ConditionPart'/,
  },
  conditionOfAGroup: {
    code: 'const g = d.group("g", (g) => { g.task("y", () => 1); }); void any(sold, g);',
    says: /Argument of type 'Group<void>' is not assignable to parameter of type 'ConditionPart'/,
  },
  ruleNotARule: {
    code: 'd.task("x", { on: [sold] }, () => 1);',
    says: /Property '\[RULE\]' is missing in type 'Signal<.*' but required in type 'Rule'/,
  },
  everyOfSignals: {
    code: 'd.task("x", { every: on(sold) }, () => 1);',
    says: /Type 'SignalSchedule<.*>' is not assignable to type .*Duration/,
  },
  signalParamsType: {
    code: 'dag("y", { schedule: on(sold) }, (e) => { e.task("x", (_, ctx) => ctx.params.signal?.value.price ?? 1); });',
    says: /Property 'price' does not exist on type '{ id: string; units: number; }'/,
  },
  actionUnknown: {
    code: 'class X extends Operator { override execute() {} override onSignal() { return "GO"; } } void X;',
    says: /Type '"GO"' is not assignable to type|Type 'string' is not assignable to type/,
  },
  assignToContext: {
    code: 'd.task("x", (_, ctx) => { ctx.tryNumber = 1; });',
    says: /'tryNumber' because it is a read-only property/,
  },
};

/** An operator X with that body of its execute and these other methods, added to the DAG. */
function operator(execute: string, methods: string): string {
  return `class X extends Operator<void, number> { async execute() { ${execute} } ${methods} } d.operator("x", new X());`;
}

const PROLOGUE = `
import {
  all, any, dag, DagRunTrigger, FileSensor, FileTrigger, on, Operator, PollTrigger, Sensor, signal, start,
  type TaskContext, Trigger,
} from "tradewind";
import { z } from "zod";
class Count extends Operator<{ table: string }, number> { override execute() { return 1; } }
class Join extends Operator<void, string, { left: string }> {
  override execute(_ctx: TaskContext, { left }: { left: string }) { return left; }
}
class JobDone extends PollTrigger<{ job: string }, { rows: number }> { static id = "x"; poll() { return { rows: 1 }; } }
class Dated extends Trigger<void, { at: Date }> { static id = "y"; async *run() { yield { at: new Date() }; } }
const sold = signal("sold", z.object({ id: z.string(), units: z.number() }));
void [all, any, on, sold, start, Count, Join, JobDone, Dated, DagRunTrigger, FileSensor, FileTrigger, Sensor];
`;

function snippet(code: string): string {
  return `${PROLOGUE}dag("x", { params: z.object({ region: z.string() }) }, (d) => {
  const rows = d.task("rows", () => ["a"]);
  void rows;
  ${code}
});`;
}

let compiled: Compiled;

beforeAll(async () => {
  const codes = Object.entries(refusals).map(([name, { code }]) => [name, snippet(code)]);
  compiled = await compile({
    ...Object.fromEntries(codes),
    accepted: snippet('d.task("x", { inputs: { rows } }, ({ rows }) => rows);'),
  });
});

test("accepts the frame around the snippets", () => {
  expect(compiled.errors.get("accepted")).toBeUndefined();
});

test.each(Object.keys(refusals))("rejects %s with a readable message", (name) => {
  expect(compiled.errors.get(name)).toMatch(refusals[name]!.says);
});

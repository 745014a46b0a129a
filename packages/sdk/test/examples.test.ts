import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { compile } from "./compile.ts";

/** Names that the examples use without defining them. */
const PROLOGUE = `
import * as tw from "tradewind";
import {
  all, any, conf, restart, signal, SignalAction, start, stop, cron, dag, every, once, on, continuous, skip, fail, endWith, isDag, serialise,
  Operator, Sensor, Trigger, PollTrigger, TriggerDagRunOperator,
  DateTimeTrigger, TimeDeltaTrigger, FileTrigger, HttpTrigger, SqlTrigger, DagRunTrigger, ExternalTaskTrigger,
  S3KeyTrigger, S3PrefixTrigger, ProcessTrigger, WebhookTrigger, RedisKeyTrigger, RedisStreamTrigger,
  DateTimeSensor, TimeDeltaSensor, FileSensor, HttpSensor, SqlSensor, DagRunSensor, ExternalTaskSensor,
  S3KeySensor, S3PrefixSensor, ProcessSensor, WebhookSensor, RedisKeySensor, RedisStreamSensor,
  DagDefinitionError, TaskError, TriggerError, DeferralTimeoutError, TriggerFailedError,
} from "tradewind";
import type { CancelContext, DagBuilder, Duration, HeardSignal, Output, TaskContext, TriggerContext } from "tradewind";
import { dates, Timetable, type TimetableQuestion } from "tradewind";
import { connection, variable } from "tradewind";
import { asset, assetAlias, averageOf, cross, deadline, email, sendSignal, webhook, zip } from "tradewind";
import { z } from "zod";
declare function isHoliday(day: Date): boolean;
declare const build: (d: DagBuilder) => void;
declare const d: DagBuilder<{ region: string }>;
declare const ctx: TaskContext;
declare const file: string;
declare const billing: { charge(): Promise<{ declined: boolean; receipt: string }> };
declare function countRows(db: unknown, table: string): number;
declare function fetchRows(): Promise<{ id: number }[]>;
declare function load(rows: unknown, region?: string): number;
declare function loadRows(rows: unknown): number;
declare function notify(text: string): Promise<void>;
declare function publish(): void;
declare const names: Output<string[]>;
declare const regions: Output<string[]>;
declare const tables: string[];
declare const sources: Output<string[]>;
declare const targets: Output<string[]>;
declare function copy(from: string, to: string): void;
declare function train(region: string, size: string): number;
declare function listFiles(): string[];
declare function extract(name: string): { rows: number };
declare function report(of: unknown): string;
declare function createCluster(): Promise<{ id: string; url: string }>;
declare function deleteCluster(id: string): Promise<void>;
declare function crunch(url: string): number;
declare class Copy extends Operator<{ table: string; to: string }, number> { execute(): number }
declare function checkNulls(): void;
declare function checkRanges(): void;
declare function loadInParts(): void;
declare function loadAtOnce(): void;
declare function submit(table: string): Promise<string>;
declare function cancelJob(job: string): Promise<void>;
declare function findJob(id: string): Promise<{ cancelled: boolean; error?: string; result?: { rows: number } }>;
declare function readMails(box: string, abort: AbortSignal): AsyncIterable<{ subject: string; acknowledge(): Promise<void> }>;
void [tw, cron, dag, every, once, continuous, skip, fail, isDag, Operator, DagDefinitionError, TaskError, build, d, ctx];
`;

/** Names that some examples define and others use. */
const SHARED: Record<string, string> = {
  rows: 'const rows = d.task("rows", () => fetchRows());',
  JobDone:
    'class JobDone extends PollTrigger<{ job: string }, { rows: number }> { static id = "x"; poll() { return { rows: 1 }; } }',
  Count: "class Count extends Operator<{ table: string }, number> { override execute() { return 1; } }",
};

async function examples(): Promise<Record<string, string>> {
  const folder = new URL("../src/", import.meta.url);
  const found: Record<string, string> = {};
  for (const file of (await readdir(folder, { recursive: true })).filter(
    (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
  )) {
    const source = await readFile(new URL(file, folder), "utf8");
    for (const [index, block] of [...source.matchAll(/^[ ]*\* ```ts\n([\s\S]*?)\* ```/gm)].entries()) {
      const code = block[1]!.replaceAll(/^\s*\* ?/gm, "");
      const shared = Object.entries(SHARED).filter(
        ([name]) => !new RegExp(`(const|class) ${name}\\b`).test(code),
      );
      const scope = /^export default/m.test(code) ? code.replace("export default", "void") : code;
      found[`${file.replace(".ts", "").replaceAll("/", "-")}-${index}`] =
        `${PROLOGUE}${shared.map(([, line]) => line).join("\n")}\nvoid async function () {\n${scope}\n};`;
    }
  }
  return found;
}

test("every example in the documentation of the SDK compiles", async () => {
  const found = await examples();
  expect(Object.keys(found).length).toBeGreaterThan(15);
  const { errors } = await compile({
    ...found,
    control: `${PROLOGUE}d.task("x", () => new Date());`,
  });
  expect(errors.get("control")).toMatch(/NotJson/);
  expect(Object.fromEntries([...errors].filter(([name]) => name !== "control"))).toEqual({});
});

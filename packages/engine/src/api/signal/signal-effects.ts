/** `/signals/{version}/effects`: what a signal has caused; `…/upstreamSignals`: which signals caused a run or a task. */
import { fitsPattern } from "@tradewind/sdk/signal-names";
import { z } from "zod";
import { senderPlace } from "../../model/signal/sender-name.ts";
import { showSignal } from "../../signal/http-documents.ts";
import { signalOf } from "../../signal/signal.ts";
import type { Connection } from "../../store/database/database.ts";
import { findDagRun } from "../../store/list/dag-runs.ts";
import {
  type CauseRow,
  causesOf,
  type EffectRow,
  effectsOf,
  findSignal,
  type RecipientRow,
  recipientsOf,
} from "../../store/signal/signal-chain.ts";
import { type SignalRow, sentAt } from "../../store/signal/signals-read.ts";
import { requireRun, runParams } from "../run/dag-runs.ts";
import type { Resource } from "../server/context.ts";
import { date, id, int, iso, mapIndex, nullableDate } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { signalDocument } from "./signals.ts";

const MOST_RECIPIENTS = 200;
const MOST_CAUSES = 20;
const MAX_VERSION = Number.MAX_SAFE_INTEGER;
const LAST_TRY = 2_147_483_647;

const kind = z
  .enum(["create", "close", "start", "restart", "stop", "resume"])
  .describe("create, close: of a run. resume: a wait has ended.");

const causeDocument = z
  .object({
    version: z.number(),
    kind,
    map_index: z.number(),
    try_number: z.number().describe("0: the run itself, or a stop."),
    at: date.describe("When it took effect."),
    /** null, as are key, sender and time: the log no longer has the signal. */
    namespace: z.string().nullable(),
    key: z.string().nullable(),
    sender: z.string().nullable(),
    time: nullableDate,
  })
  .meta({ id: "SignalCause" });

const effectDocument = z
  .object({
    kind,
    dag_id: z.string(),
    dag_run_id: z.string(),
    run_state: z.string(),
    task_id: z.string().nullable().describe("null: the run itself."),
    map_index: z.number(),
    try_number: z.number(),
    state: z.string().nullable().describe("Of the try, of the task, or of the run."),
    at: date.describe("The run was created, the try queued, the wait ended."),
    latency_seconds: z.number().describe("From the signal to that time."),
    started_at: nullableDate.describe("The run or the try started, or the task continued after its wait."),
    wait: z.string().nullable().describe("The name of the wait."),
    waited_since: nullableDate,
  })
  .meta({ id: "SignalEffect" });

const chainDocument = z
  .object({
    signal: signalDocument,
    source: z
      .object({
        kind: z.enum(["task", "run", "trigger", "user", "webhook", "client", "engine"]),
        name: z.string(),
        dag_id: z.string().nullable(),
        dag_run_id: z.string().nullable(),
        task_id: z.string().nullable(),
      })
      .describe("What the signal is from."),
    caused_by: z.array(causeDocument).describe("The signals that caused the run or the try that it is from."),
    effects: z.array(effectDocument).describe("The earliest first."),
    more: z.boolean().describe("There are more effects."),
    recipients: z.array(
      z.object({
        name: z.string(),
        host: z.string().nullable(),
        state: z
          .enum(["received", "waiting", "retrying", "dead"])
          .describe("waiting: it has not reached the signal; dead: it gave the signal up."),
        error: z.string().nullable(),
        dead_letter_id: z.number().nullable(),
      }),
    ),
  })
  .meta({ id: "SignalEffects" });

export const signalEffects: Resource = (app, { database }) => {
  app.get(
    "/api/v2/signals/:version/effects",
    {
      schema: {
        params: z.strictObject({ version: int(0, MAX_VERSION) }),
        querystring: z.strictObject({ limit: int(1, 1_000).default(100) }),
        response: { 200: chainDocument },
        tags: ["Signal"],
      },
    },
    async ({ params: { version }, query: { limit } }) => {
      const row = await findSignal(database, version);
      if (row === undefined)
        throw notFound(`The log has no signal with version ${version}: it was deleted, or never sent`);
      const [effects, recipients] = await Promise.all([
        effectsOf(database, version, limit + 1),
        recipientsOf(database, version, MOST_RECIPIENTS),
      ]);
      const source = sourceOf(row);
      return {
        signal: showSignal(signalOf(row)),
        source,
        caused_by: await causedBy(database, source, row),
        effects: effects.slice(0, limit).map((effect) => showEffect(effect, row)),
        more: effects.length > limit,
        recipients: recipients.filter((each) => isSubscribed(each, row)).map(showRecipient),
      };
    },
  );

  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/upstreamSignals",
    {
      schema: {
        params: runParams,
        querystring: z.strictObject({
          task_id: id.optional().describe("Default: the run itself."),
          map_index: mapIndex.default(-1),
          try_number: int(0).optional().describe("Tries up to this one; default: the latest."),
        }),
        response: { 200: z.object({ signals: z.array(causeDocument) }) },
        tags: ["DagRun"],
      },
    },
    async ({ params, query }) => {
      const { id: dagRunId } = await requireRun(database, params);
      const { map_index, task_id: taskId, try_number: upToTry = LAST_TRY } = query;
      const task = taskId === undefined ? null : { taskId, mapIndex: map_index, upToTry };
      const rows = await causesOf(database, { dagRunId, task, limit: MOST_CAUSES });
      return { signals: rows.map(showCause) };
    },
  );
};

type Source = z.output<typeof chainDocument>["source"];

/** What a signal is from: its sender, or what the engine reports in its own namespaces. */
function sourceOf({
  key,
  namespace,
  sender,
  value,
}: Pick<SignalRow, "key" | "namespace" | "sender" | "value">): Source {
  const task = senderPlace(namespace === "task" ? `task:${key}` : sender);
  if (task !== null)
    return {
      ...sourceNamed("task", task.taskId),
      dag_id: task.dagId,
      dag_run_id: task.runId,
      task_id: task.taskId,
    };
  if (namespace === "run") {
    const [dagId = "", runId] = [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)];
    return { ...sourceNamed("run", runId), dag_id: dagId, dag_run_id: runId };
  }
  if (namespace === "trigger") {
    const { kind, runId } = (value ?? {}) as { readonly kind?: string; readonly runId?: string };
    const run = typeof runId === "string" ? { dag_id: key, dag_run_id: runId } : null;
    return { ...sourceNamed("trigger", kind ?? key), ...run };
  }
  if (namespace === "webhook") return sourceNamed("webhook", key);
  if (namespace === "action") return sourceNamed("user", sender);
  return sourceNamed(sender === "engine" || sender.startsWith("scheduler:") ? "engine" : "client", sender);
}

function sourceNamed(kind: Source["kind"], name: string): Source {
  return { kind, name, dag_id: null, dag_run_id: null, task_id: null };
}

/** The latest try of the task that began before the signal, else its run. */
async function causedBy(database: Connection, { dag_id, dag_run_id, task_id }: Source, sent: SignalRow) {
  if (dag_id === null || dag_run_id === null) return [];
  const run = await findDagRun(database, dag_id, dag_run_id);
  if (run === undefined) return [];
  const of = { dagRunId: run.id, limit: MOST_CAUSES };
  const task = { taskId: task_id ?? "", mapIndex: -1, upToTry: LAST_TRY };
  const tries = task_id === null ? [] : await causesOf(database, { ...of, task });
  const before = tries.filter(({ at }) => at <= sentAt(sent));
  const last = before.filter(({ try_number: tryNumber }) => tryNumber === before[0]?.try_number);
  return (last.length > 0 ? last : await causesOf(database, { ...of, task: null })).map(showCause);
}

function showCause({ id: version, at, sent_at, ...cause }: CauseRow): z.output<typeof causeDocument> {
  return { ...cause, version, at: iso(at), time: iso(sent_at) };
}

function showEffect(effect: EffectRow, signal: SignalRow): z.output<typeof effectDocument> {
  const { at, started_at, task_id, run_id, wait_name, waited_since, ...rest } = effect;
  return {
    ...rest,
    dag_run_id: run_id,
    task_id: task_id === "" ? null : task_id,
    at: iso(at),
    latency_seconds: (at.getTime() - sentAt(signal).getTime()) / 1_000,
    started_at: iso(started_at),
    wait: wait_name,
    waited_since: iso(waited_since),
  };
}

function isSubscribed({ filter, state }: RecipientRow, { key, namespace, sender }: SignalRow): boolean {
  if (state === "dead") return true;
  const { keys, namespace: wanted, sender: from } = filter as unknown as ListenerFilter;
  return (
    fitsPattern(wanted, namespace) &&
    keys.some((each) => fitsPattern(each, key)) &&
    (from ?? sender) === sender
  );
}

interface ListenerFilter {
  readonly namespace: string;
  readonly keys: readonly string[];
  readonly sender: string | null;
}

function showRecipient({ filter: _, ...shown }: RecipientRow) {
  return shown;
}

/** `…/task-instances/{task_id}/same-error`: in which of the last runs a task failed for the same reason, and since when. */
import { z } from "zod";
import { failureFingerprint, worstState } from "../../model/index.ts";
import {
  findFailedTry,
  readTaskFailures,
  type TaskFailure,
  type TaskFailures,
} from "../../store/ui/task-failures.ts";
import { requireTimelineRun } from "../run/run-times.ts";
import type { Resource } from "../server/context.ts";
import { id, int, mapIndex } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { bytes, legend, TASK_LEGEND, taskByte, times, UI_TAG } from "./columns.ts";

/** Values of the column `same`. */
const SAME = ["no", "yes", "earlier_try"] as const;

const sameErrorDocument = z
  .object({
    try_number: z.number(),
    reason: z.string().nullable().describe("Null: the try has not failed."),
    fingerprint: z
      .string()
      .nullable()
      .describe("The reason without ids, numbers, dates, paths and quoted texts: equal for equal errors."),
    task_states: legend,
    run_ids: z.array(z.string()).describe("The oldest first; the last is this run."),
    run_after: times,
    versions: z
      .array(z.number())
      .describe("Of the first try with this error; of a run without it, the version of the run."),
    states: bytes,
    same: bytes.describe(
      "Base64: 1, the task failed with this error; 2, an earlier try of it did; 0, neither.",
    ),
    count: z.number().describe("Runs with this error."),
    since: z
      .object({
        run_id: z.string(),
        version: z.number(),
        is_oldest: z
          .boolean()
          .describe("It is the oldest run that was compared: the error may have begun before."),
      })
      .nullable()
      .describe("The first run with this error."),
    previous: z
      .object({
        version: z.number(),
        runs: z.number().describe("How many of the compared runs had this version, all without the error."),
      })
      .nullable()
      .describe("The version of the run before, if the error began with another version."),
  })
  .meta({ id: "UiSameError" });

const sameErrorQuery = z.strictObject({
  map_index: mapIndex.default(-1),
  try: int(1).optional().describe("By default the last try that failed."),
  runs: int(1, 100).default(30),
});

export const uiSameError: Resource = (app, { database }) => {
  app.get(
    "/ui/dags/:dag_id/runs/:dag_run_id/task-instances/:task_id/same-error",
    {
      schema: {
        params: z.object({ dag_id: id, dag_run_id: id, task_id: id }),
        querystring: sameErrorQuery,
        response: { 200: sameErrorDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId, dag_run_id: runId, task_id: taskId }, query }) => {
      const run = await requireTimelineRun(database, dagId, runId);
      const [failed, rows] = await Promise.all([
        findFailedTry(database, {
          ...{ runId: run.id, taskId, mapIndex: query.map_index, tryNumber: query.try ?? null },
        }),
        readTaskFailures(database, { dagId, runId: run.id, taskId, runs: query.runs }),
      ]);
      if (failed === undefined)
        throw notFound(`Run "${runId}" of DAG "${dagId}" has no such try of the task "${taskId}"`);
      const fingerprint = failureFingerprint(failed.reason);
      const found = rows.map((row) => sameIn(row, fingerprint));
      const same = found.map(({ same }) => same);
      const versions = found.map(({ version }, at) => version ?? rows[at]!.version);
      return {
        try_number: failed.try_number,
        reason: failed.reason,
        fingerprint,
        task_states: [...TASK_LEGEND],
        run_ids: rows.map(({ run_id }) => run_id),
        run_after: rows.map(({ run_after }) => run_after),
        versions,
        states: base64(rows.map(({ states }) => (states.length === 0 ? 0 : taskByte(worstState(states))))),
        same: base64(same.map((each) => SAME.indexOf(each))),
        count: same.filter((each) => each !== "no").length,
        ...beginning(
          rows.map((row, at) => ({ ...row, version: versions[at]! })),
          same.findIndex((each) => each !== "no"),
        ),
      };
    },
  );
};

/** With the version of the first try that had the error. */
function sameIn(
  { earlier_failures: earlier, failures }: TaskFailures,
  fingerprint: string | null,
): { readonly same: (typeof SAME)[number]; readonly version?: number } {
  if (fingerprint === null) return { same: "no" };
  const matching = (each: readonly TaskFailure[]) =>
    each.filter(({ reason }) => failureFingerprint(reason) === fingerprint).map(({ version }) => version);
  const [last, before] = [matching(failures), matching(earlier)];
  if (last.length + before.length === 0) return { same: "no" };
  return { same: last.length > 0 ? "yes" : "earlier_try", version: Math.min(...last, ...before) };
}

/** With the version before the first failure, if it never had the error. */
function beginning(rows: readonly TaskFailures[], first: number) {
  const since = rows[first];
  if (since === undefined) return { since: null, previous: null };
  const { run_id, version } = since;
  const previous = rows.slice(0, first).findLast(({ states }) => states.length > 0)?.version;
  const isOther = previous !== undefined && previous !== version;
  const runs = rows.slice(0, first).filter((row) => row.version === previous && row.states.length > 0).length;
  return {
    since: { run_id, version, is_oldest: first === 0 },
    previous: isOther ? { version: previous, runs } : null,
  };
}

function base64(values: readonly number[]): string {
  return Buffer.from(values).toString("base64");
}

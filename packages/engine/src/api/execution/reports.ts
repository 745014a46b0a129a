/** `/execution/v1/reports`: starts and ends of assignments. The run's owner applies them. */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { readAttemptOutcome, readCallEnd } from "../../execute/attempt/protocol.ts";
import type { OutputReference } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { insertReports, type NewReport } from "../../store/execute/reports.ts";
import { objectsOfAttempts } from "../../store/output/output-objects.ts";
import type { Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { invalid, Problem } from "../server/problem.ts";
import { ExecutionAccess, executionRoute } from "./execution-access.ts";

const report = z.strictObject({
  token: z.string(),
  type: z.enum(["started", "ended"]),
  /**
   * started: `{ pid }`; ended: `{ outcome, started }` of an attempt, with a start that was not reported before, or
   * `{ error, action }` of a callback or a reaction.
   */
  content: z.any(),
  /** How long ago it happened. */
  ago_ms: z.number().min(0).max(8.64e8),
});

export const reports: Resource = (app, options) => {
  const access = new ExecutionAccess(options);
  app.post(
    "/execution/v1/reports",
    {
      config: executionRoute(options),
      // Outputs up to the inline limit are part of their report.
      bodyLimit: 256 * 1024 * 1024,
      schema: {
        body: z.strictObject({ worker: int(1), reports: z.array(report).max(1_000) }),
        response: { 200: z.object({ superseded: z.array(z.string()) }) },
        tags: ["Task execution"],
      },
    },
    async (request) => {
      const { reports: given, worker } = request.body;
      await access.requireWorker(request, worker);
      const ids = access.assignmentsOf(
        given.map(({ token }) => token),
        worker,
      );
      const rows = given.map(({ ago_ms: agoMs, content, type }, at): NewReport => {
        const checked = type === "started" ? startOf(content) : endOf(content);
        if (checked === null)
          throw invalid(["body", "reports", at, "content"], `is not the content of "${type}"`);
        return { assignmentId: ids[at] ?? "", workerJob: worker, type, content: checked, agoMs };
      });
      // An end and its start may be in one request: they are two rows of one assignment.
      const accepted = await insertReports(options.database, await withStored(options.database, rows));
      return { superseded: [...new Set(ids)].filter((id) => !accepted.has(id)) };
    },
  );
};

/** The references of large outputs as the database has them: an attempt has only the object that it stored itself. */
async function withStored(database: Database, rows: readonly NewReport[]): Promise<readonly NewReport[]> {
  const isLarge = ({ content }: NewReport) => outcomeOf(content)?.stored !== undefined;
  const ids = rows.filter(isLarge).map(({ assignmentId }) => assignmentId);
  if (ids.length === 0) return rows;
  const objects = await objectsOfAttempts(database, ids);
  return rows.map((row) => {
    if (!isLarge(row)) return row;
    const stored = objects.get(row.assignmentId);
    if (stored === undefined || stored.id !== outcomeOf(row.content)?.stored?.id)
      throw new Problem(
        403,
        "OUTPUT_FOREIGN",
        `Attempt ${row.assignmentId} reported a large output that it has not stored`,
      );
    const outcome = { ...outcomeOf(row.content), stored };
    return { ...row, content: { ...(row.content as object), outcome } as unknown as Json };
  });
}

function outcomeOf(content: Json): { readonly stored?: OutputReference } | undefined {
  return (content as { readonly outcome?: { readonly stored?: OutputReference } }).outcome;
}

function startOf(content: unknown): { readonly pid: number } | null {
  const { pid } = (content ?? {}) as { readonly pid?: unknown };
  return Number.isInteger(pid) ? { pid: pid as number } : null;
}

function endOf(content: unknown): Json | null {
  const { outcome, started = null } = (content ?? {}) as { readonly outcome?: unknown; started?: unknown };
  if (outcome === undefined) return readCallEnd(content) as unknown as Json;
  const read = readAttemptOutcome(outcome);
  const start = started === null ? null : startOf(started);
  const { beforeMs } = (started ?? {}) as { readonly beforeMs?: unknown };
  if (read === null || (start !== null && typeof beforeMs !== "number")) return null;
  const began = start === null ? null : { ...start, beforeMs: beforeMs as number };
  return { outcome: read, started: began } as unknown as Json;
}

/**
 * `/ui/signals`: the log of this installation with the effects of each signal, and its histogram. Signals of another
 * service appear as this installation has stored them.
 */
import { z } from "zod";
import { likePattern } from "../../model/signal/signal-names.ts";
import { showSignal } from "../../signal/http-documents.ts";
import { signalOf } from "../../signal/signal.ts";
import type { Connection } from "../../store/database/database.ts";
import { countEffects } from "../../store/signal/signal-chain.ts";
import { listSignals } from "../../store/signal/signals-list.ts";
import { versionBefore } from "../../store/signal/signals-time.ts";
import { type Histogram, signalHistogram } from "../../store/ui/signal-histogram.ts";
import type { Resource } from "../server/context.ts";
import { instant, int, iso, nullableDate } from "../server/fields.ts";
import { invalid } from "../server/problem.ts";
import { filterShape, signalDocument } from "../signal/signals.ts";
import { UI_TAG } from "./columns.ts";

const MAX_VERSION = Number.MAX_SAFE_INTEGER;
/** Effects of one signal that a list counts. */
const MOST_COUNTED = 100;
/** Signals that one histogram reads, matching or not. */
const MOST_SCANNED = 100_000;
const MOST_NAMES = 5;

const listDocument = z
  .object({
    signals: z.array(
      signalDocument.extend({
        runs: z.number().describe("Runs that it created or closed, up to 100."),
        tasks: z.number().describe("Tasks that it started, restarted, stopped or resumed, up to 100."),
        dead_letters: z.number(),
      }),
    ),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: "UiSignals" });

const histogramDocument = z
  .object({
    series: z
      .array(z.object({ name: z.string().nullable(), counts: z.array(z.number()) }))
      .describe("By namespace, or within one by the first part of the key; null: all others."),
    complete_since: nullableDate.describe("Set: older signals are not counted, because there are too many."),
  })
  .meta({ id: "UiSignalHistogram" });

const range = { from: instant.optional(), to: instant.optional() };

export const uiSignals: Resource = (app, { database }) => {
  const tags = [UI_TAG.name];
  app.get(
    "/ui/signals",
    {
      schema: {
        querystring: z.strictObject({
          ...filterShape,
          ...range,
          version: int(0, MAX_VERSION).optional().describe("Only this signal."),
          cursor: int(0, MAX_VERSION).optional().describe("next_cursor of the previous page."),
          limit: int(1, 1_000).default(100),
        }),
        response: { 200: listDocument },
        tags,
      },
    },
    async ({ query }) => {
      const { cursor, from, limit, to, version } = query;
      const [after, upTo] = await versionsOf(database, { from, to });
      const rows = await listSignals(database, {
        ...(version === undefined ? patternsOf(query) : {}),
        sender: query.sender,
        version:
          version === undefined
            ? { gt: after, lte: upTo, lt: cursor ?? null }
            : { gte: version, lte: version },
        descending: true,
        limit: limit + 1,
      });
      const signals = rows.slice(0, limit);
      const counts = await countEffects(
        database,
        signals.map(({ id }) => id),
        MOST_COUNTED,
      );
      return {
        signals: signals.map((row) => {
          const { runs, tasks, dead_letters } = counts.get(row.id)!;
          return { ...showSignal(signalOf(row)), runs, tasks, dead_letters };
        }),
        next_cursor: rows.length > limit ? `${signals.at(-1)!.id}` : null,
      };
    },
  );

  app.get(
    "/ui/signals/histogram",
    {
      schema: {
        querystring: z.strictObject({
          ...filterShape,
          from: instant,
          to: instant,
          buckets: int(1, 200).default(60),
        }),
        response: { 200: histogramDocument },
        tags,
      },
    },
    async ({ query }) => {
      const { buckets, from, sender, to } = query;
      if (from >= to) throw invalid(["query", "to"], "Must be after from");
      const versions = await versionsOf(database, { from, to });
      const limits = { limit: MOST_SCANNED, names: MOST_NAMES };
      const told = await signalHistogram(database, {
        ...patternsOf(query),
        ...{ sender, from, to, buckets, versions },
        ...limits,
      });
      return { series: seriesOf(told, buckets), complete_since: iso(told.completeSince) };
    },
  );
};

function patternsOf({
  key,
  namespace = "default",
}: {
  readonly key?: readonly string[] | undefined;
  readonly namespace?: string | undefined;
}) {
  return { namespace: likePattern(namespace), keys: (key ?? ["*"]).map(likePattern) };
}

async function versionsOf(
  database: Connection,
  { from, to }: { readonly from?: Date | undefined; readonly to?: Date | undefined },
): Promise<readonly [after: number, upTo: number]> {
  return [
    from === undefined ? 0 : await versionBefore(database, from),
    to === undefined ? MAX_VERSION : await versionBefore(database, to),
  ];
}

/** The most frequent names first, all others last. */
function seriesOf({ rows }: Histogram, buckets: number) {
  const series = new Map<string | null, number[]>();
  for (const { amount, bucket, name } of rows) {
    const counts = series.get(name) ?? new Array<number>(buckets).fill(0);
    series.set(name, counts);
    counts[bucket] = amount;
  }
  const total = (counts: readonly number[]) => counts.reduce((sum, each) => sum + each, 0);
  return [...series]
    .map(([name, counts]) => ({ name, counts }))
    .sort((a, b) => Number(a.name === null) - Number(b.name === null) || total(b.counts) - total(a.counts));
}

/** `/ui/search`: DAGs, runs, tasks, assets and settings by name, for the command palette. */
import { z } from "zod";
import { type Found, search } from "../../store/ui/search.ts";
import type { Resource } from "../server/context.ts";
import { RUN_STATES, text } from "../server/fields.ts";
import { UI_TAG } from "./columns.ts";

const MOST_WORDS = 5;
const MOST_RESULTS = 30;

const KINDS = ["dag", "task", "run", "asset", "connection", "pool", "variable"] as const;

const searchDocument = z
  .object({
    results: z
      .array(
        z.object({
          kind: z.enum(KINDS),
          name: z.string().describe("The id, URI or key of the thing."),
          dag_id: z.string().nullable().describe("Of a DAG, a task or a run."),
          run_id: z.string().nullable(),
          task_id: z.string().nullable(),
          state: z.enum(RUN_STATES).nullable().describe("Of a run."),
          is_paused: z.boolean().nullable().describe("Of a DAG."),
        }),
      )
      .describe("The best first, at most 30."),
  })
  .meta({ id: "UiSearch" });

const searchQuery = z.strictObject({
  q: text.describe(
    "Up to five words. Each must occur; of tasks and runs, some may occur in the id of the DAG.",
  ),
});

export const uiSearch: Resource = (app, { database }) => {
  app.get(
    "/ui/search",
    { schema: { querystring: searchQuery, response: { 200: searchDocument }, tags: [UI_TAG.name] } },
    async ({ query }) => {
      const words = query.q.toLowerCase().split(/\s+/).filter(Boolean).slice(0, MOST_WORDS);
      if (words.length === 0) return { results: [] };
      return { results: ranked(await search(database, words), words) };
    },
  );
};

function ranked(found: readonly Found[], words: readonly string[]): Found[] {
  const known = new Set<string>();
  return found
    .map((each, place) => ({ each, place, rank: rankOf(each, words) }))
    .sort((a, b) => a.rank - b.rank || kindOf(a.each) - kindOf(b.each) || a.place - b.place)
    .map(({ each }) => each)
    .filter(({ dag_id, kind, name }) => {
      const key = JSON.stringify([kind, dag_id, name]);
      return !known.has(key) && known.add(key);
    })
    .slice(0, MOST_RESULTS);
}

function kindOf({ kind }: Found): number {
  return KINDS.indexOf(kind);
}

/** Equal, begins with the words, has a part that begins with the last of them, contains them. */
function rankOf({ name }: Found, words: readonly string[]): number {
  const lower = name.toLowerCase();
  const [all, last] = [words.join(" "), words.at(-1)!];
  if (lower === all || lower === last) return 0;
  if (lower.startsWith(all) || lower.startsWith(last)) return 1;
  return new RegExp(`[^a-z\\d]${RegExp.escape(last)}`).test(lower) ? 2 : 3;
}

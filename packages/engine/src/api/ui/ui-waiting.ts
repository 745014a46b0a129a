/** `/ui/waiting/groups`: current waits by what they wait for. */
import { z } from "zod";
import { waitGroups } from "../../store/ui/wait-groups.ts";
import type { Resource } from "../server/context.ts";
import { date, id, iso, nullableDate } from "../server/fields.ts";
import { UI_TAG } from "./columns.ts";

const groupsDocument = z
  .object({
    groups: z
      .array(
        z.object({
          kind: z.string(),
          signal: z.string().nullable().describe("namespace/key; null: not a wait for a signal."),
          waiting: z.number(),
          since: date.describe("When the longest wait began."),
          timeout_at: nullableDate.describe("The next timeout of a wait, without timeouts of tasks."),
        }),
      )
      .describe("The largest first, at most 200."),
    total_groups: z.number(),
    total_waiting: z.number(),
    is_partial: z.boolean().describe("There are more waits: only the longest ones are counted."),
  })
  .meta({ id: "UiWaitGroups" });

export const uiWaiting: Resource = (app, { database }) => {
  app.get(
    "/ui/waiting/groups",
    {
      schema: {
        querystring: z.strictObject({ dag_id: id.optional() }),
        response: { 200: groupsDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ query }) => {
      const { groups, isPartial, totalGroups, totalWaiting } = await waitGroups(
        database,
        query.dag_id ?? null,
      );
      return {
        groups: groups.map(({ kind, signal, since, timeout_at, waiting }) => ({
          kind,
          signal,
          waiting,
          since: iso(since),
          timeout_at: iso(timeout_at),
        })),
        total_groups: totalGroups,
        total_waiting: totalWaiting,
        is_partial: isPartial,
      };
    },
  );
};

/** `/ui/database`: how fast, large and busy the database is. */
import { z } from "zod";
import { databaseState } from "../../store/ui/database-state.ts";
import type { Resource } from "../server/context.ts";
import { UI_TAG } from "./columns.ts";

const databaseDocument = z
  .object({
    latency_ms: z.number().describe("Until it has answered an empty query of this API server."),
    version: z.string(),
    size_bytes: z.number(),
    connections: z.number().describe("To all databases of the server."),
    max_connections: z.number(),
    oldest_transaction: z
      .object({
        pid: z.number(),
        user: z.string(),
        application: z.string().nullable(),
        state: z.string(),
        age_seconds: z.number(),
      })
      .nullable()
      .describe("null: none is open, or the role may not see it."),
  })
  .meta({ id: "UiDatabase" });

export const uiDatabase: Resource = (app, { database }) => {
  app.get(
    "/ui/database",
    { schema: { response: { 200: databaseDocument }, tags: [UI_TAG.name] } },
    async () => {
      const { latencyMs, ...state } = await databaseState(database);
      return { latency_ms: latencyMs, ...state };
    },
  );
};

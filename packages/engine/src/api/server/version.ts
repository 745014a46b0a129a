import { z } from "zod";
import type { Resource } from "./context.ts";

export const version: Resource = (app, { config }) => {
  app.get(
    "/api/v2/version",
    {
      config: { open: true },
      schema: {
        response: { 200: z.object({ version: z.string(), git_version: z.string().nullable() }) },
        tags: ["Version"],
      },
    },
    async () => ({ version: config.version, git_version: null }),
  );
};

/** The description of this API, generated from the schemas that enforce it. */
import { z } from "zod";
import type { Resource } from "./context.ts";

export const openApi: Resource = (app) => {
  for (const url of ["/api/v2/openapi.json", "/openapi.json"]) {
    app.get(url, { schema: { response: { 200: z.any() }, hide: true } }, async () => app.swagger());
  }
};

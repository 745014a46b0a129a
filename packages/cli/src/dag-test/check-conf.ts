import type { DagManifest, Json } from "@tradewind/sdk/manifest";
import { fieldProblems } from "../client/http-error.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { JsonObject } from "../input/values.ts";

/** Validates the conf before the test, as the server does before it creates a run. */
export async function checkConf(
  { dagId, paramsSchema }: Pick<DagManifest, "dagId" | "paramsSchema">,
  conf: JsonObject,
): Promise<void> {
  const { ParamsCheck } = await import("@tradewind/engine");
  try {
    new ParamsCheck().check({ id: 0, schema: paramsSchema }, conf as Json);
  } catch (error) {
    throw new CliError("TW_PARAMS_INVALID", `cannot test ${dagId}: the conf does not match its params.`, {
      exit: EXIT.usage,
      fields: fieldProblems((error as { readonly detail?: unknown }).detail),
      remedy: "correct --conf",
      cause: error,
    });
  }
}

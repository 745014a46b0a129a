import type { DagManifest, Json } from "@tradewind/sdk/manifest";
import { fieldProblems } from "../client/http-error.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { JsonObject } from "../input/values.ts";

/** As the server does before it makes a run: what the DAG's params refuse would only fail, task by task. */
export async function checkConf(
  { dagId, paramsSchema }: Pick<DagManifest, "dagId" | "paramsSchema">,
  conf: JsonObject,
): Promise<void> {
  const { ParamsCheck } = await import("@tradewind/engine");
  try {
    new ParamsCheck().check({ id: 0, schema: paramsSchema }, conf as Json);
  } catch (error) {
    throw new CliError("TW_PARAMS_INVALID", `cannot test ${dagId}: its params refuse the conf.`, {
      exit: EXIT.usage,
      fields: fieldProblems((error as { readonly detail?: unknown }).detail),
      remedy: "give another with --conf",
      cause: error,
    });
  }
}

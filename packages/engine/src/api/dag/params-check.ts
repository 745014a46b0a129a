/** Checks a run's conf against its DAG's params; the error names each field. */
import type { Json } from "@tradewind/sdk/manifest";
import { type CheckedVersion, ParamsValidator } from "../../service/params-validator.ts";
import { Problem } from "../server/problem.ts";

export class ParamsCheck {
  readonly #validator = new ParamsValidator();

  /** Throws a 422 that names the field. Does nothing if the version has no schema. */
  check(version: CheckedVersion, conf: Json): void {
    const fields = this.#validator.problems(version, conf).map(({ keyword, path, problem }) => {
      const loc = ["body", "conf", ...path];
      return { loc, msg: `${loc.slice(1).join(".")}: ${problem}`, type: `params.${keyword}`, problem };
    });
    if (fields.length > 0) throw new Problem(422, "VALIDATION", fields);
  }
}

/** A run's conf that its DAG's params refuse, as an answer that names each field. */
import type { Json } from "@tradewind/sdk/manifest";
import { type CheckedVersion, ParamsValidator } from "../../service/params-validator.ts";
import { Problem } from "../server/problem.ts";

export class ParamsCheck {
  readonly #validator = new ParamsValidator();

  /** Throws the 422 that names the field; does nothing when the version publishes no schema. */
  check(version: CheckedVersion, conf: Json): void {
    const fields = this.#validator.problems(version, conf).map(({ keyword, path, problem }) => {
      const loc = ["body", "conf", ...path];
      return { loc, msg: `${loc.slice(1).join(".")}: ${problem}`, type: `params.${keyword}` };
    });
    if (fields.length > 0) throw new Problem(422, "VALIDATION", fields);
  }
}

import { join } from "node:path";
import type { Check } from "./checks.ts";

const SHOWN = 10;

/** Files that load but export less than expected, as reported by the DAG processor of this home. */
export async function* checkDagFiles(home: string): AsyncGenerator<Check> {
  const { forgetfulFiles } = await import("@tradewind/engine");
  const files = await forgetfulFiles(join(home, "dag-files.json"));
  for (const { file, unexported } of files.slice(0, SHOWN)) {
    yield {
      name: "DAG files",
      result: "warn",
      says:
        unexported.length > 0
          ? `${file} creates ${unexported.join(", ")} but does not export it`
          : `${file} imports tradewind but exports no DAG, and no DAG file imports it`,
      remedy: "add: export default dag(…), or add the file to .tradewindignore",
    };
  }
}

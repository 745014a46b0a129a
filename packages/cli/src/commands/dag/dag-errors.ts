/** `tradewind dags errors`, and the summary of it below the list of DAGs. */
import type { Command } from "@commander-js/extra-typings";
import type { Listed } from "../../client/client.ts";
import type { ImportProblem } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { SourcePaths } from "../../output/source-paths.ts";
import { relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { plainLine, plainText } from "../../terminal.ts";

/** How many errors are shown below another list. */
const FEW = 3;

export function addErrorsCommand(dags: Command, session: Session): void {
  const { terminal } = session;

  dags
    .command("errors")
    .description("list DAG files that fail to load; exit 1 if there are any")
    .addHelpText(
      "after",
      examples(
        "tradewind dags errors",
        "# in CI: fail if a file fails to load",
        "tradewind dags errors --quiet",
      ),
    )
    .action(async () => {
      const { items } = await listErrors(session, 0);
      if (items.length > 0) session.exitCode = EXIT.failed;
      if (session.format !== "table") return session.printObject(items, []);
      if (items.length === 0) return session.note("All files load.");
      const paths = SourcePaths.of(session);
      for (const [index, { filename, stack_trace, timestamp }] of items.entries()) {
        if (index > 0) terminal.data("");
        const since = terminal.paint("dim", relativeTime(timestamp));
        terminal.data(`${terminal.paint("bold", plainLine(paths.file(filename)))}  ${since}`);
        for (const line of plainText(paths.inImportError(stack_trace), terminal.colour("stdout"))
          .trimEnd()
          .split("\n"))
          terminal.data(`  ${line}`.trimEnd());
      }
    });
}

/** A DAG missing from the list is usually in a file that fails to load. */
export async function printImportErrors(session: Session): Promise<void> {
  const { items, total } = await listErrors(session, FEW);
  if (total === 0) return;
  session.note(
    session.terminal.paintNote("yellow", `${total} file${total === 1 ? "" : "s"} failed to load:`),
  );
  const paths = SourcePaths.of(session);
  for (const { filename, stack_trace } of items) {
    const [problem = ""] = paths.inImportError(stack_trace).trim().split("\n", 1);
    const file = paths.file(filename);
    session.note(problem.startsWith(file) ? `  ${problem}` : `  ${file}: ${problem}`);
  }
  const more = total - items.length;
  if (more > 0) session.note(`  … and ${more} more: \`tradewind dags errors\` lists all.`);
}

/** @param limit 0 = all. */
function listErrors(session: Session, limit: number): Promise<Listed<ImportProblem>> {
  const what = "cannot list the import errors";
  return session.client.list({ path: "/importErrors", key: "import_errors", what, limit });
}

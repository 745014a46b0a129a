import { basename } from "node:path";
import { nearest } from "@tradewind/sdk/wording";
import { CliError } from "../errors.ts";
import type { Session } from "../session.ts";
import { path } from "./client.ts";
import { HttpError } from "./http-error.ts";
import type { Dag, ImportProblem } from "./resources.ts";

/** Of so many DAGs one may have been meant. */
const SEEN = 1_000;

/** The error, with what may have been meant when it is that there is no such DAG. Never rejects. */
export async function withNearestDag(error: unknown, session: Session | undefined): Promise<unknown> {
  if (!(error instanceof HttpError) || error.status !== 404 || session === undefined) return error;
  const { dagId } = error;
  if (dagId === null || dagId === "~") return error;
  try {
    if (await hasDag(session, dagId)) return error;
    const { items } = await session.client.list<Dag>({
      path: "/dags",
      key: "dags",
      what: "cannot list the DAGs",
      limit: SEEN,
    });
    const near = nearest(
      dagId,
      items.map((dag) => dag.dag_id),
    );
    const meant = near === undefined ? "" : `did you mean "${near}"? `;
    return new CliError(error.code, error.message, {
      exit: error.exit,
      remedy: `${meant}\`tradewind dags list\` shows all DAGs${await brokenFiles(session, dagId)}`,
      fields: error.fields,
      cause: error,
    });
  } catch {
    // What was asked for is not there: that is the news, and it is not lost because nothing better can be found.
    return error;
  }
}

/** It may be in a file that does not load. */
async function brokenFiles({ client }: Session, dagId: string): Promise<string> {
  const { items, total } = await client.list<ImportProblem>({
    path: "/importErrors",
    key: "import_errors",
    what: "cannot list the import errors",
    limit: SEEN,
  });
  const own = items.find(({ filename }) => basename(filename).replace(/\.[^.]*$/, "") === dagId);
  if (own) return `. ${own.filename} cannot be loaded: ${own.stack_trace.trim().split("\n", 1)[0]}`;
  if (total === 0) return "";
  return `, and ${total === 1 ? "the file that cannot be loaded" : `the ${total} files that cannot be loaded`}`;
}

async function hasDag({ client }: Session, dagId: string): Promise<boolean> {
  try {
    await client.get<Dag>(path`/dags/${dagId}`, { what: "cannot find the DAG" });
    return true;
  } catch (error) {
    if (error instanceof HttpError && error.status === 404) return false;
    throw error;
  }
}

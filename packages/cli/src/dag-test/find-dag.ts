import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { BundleResult, BundlerPool } from "@tradewind/engine";
import { nearest } from "@tradewind/sdk/wording";
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Session } from "../session.ts";
import type { TestOptions } from "./parent.ts";
import type { Bundled } from "./write-bundle.ts";

type DagFile = Parameters<BundlerPool["bundle"]>[0][number];

const IMPORT_TIMEOUT_MS = 30_000;

export interface FoundDag {
  readonly bundle: Bundled;
  readonly manifest: Bundled["manifests"][number];
  /** The folder it was bundled in: what the names in its source map are relative to. */
  readonly folder: string;
}

/** The bundle that holds the DAG: of the file that was named, or of the one in the DAG folder that exports this id. */
export async function findTestDag(
  session: Session,
  options: TestOptions,
  outFolder: string,
): Promise<FoundDag> {
  const isFile = /\.(?:m?ts|m?js)$/.test(options.what);
  if (isFile && !existsSync(options.what)) {
    throw new CliError("TW_CLI_NO_FILE", `the file ${options.what} does not exist.`, { exit: EXIT.notFound });
  }
  const { DagFolder } = await import("@tradewind/engine");
  const folder = resolve(
    isFile ? dirname(options.what) : options.dags || session.host.env.TRADEWIND_DAGS || "dags",
  );
  const files: readonly DagFile[] = isFile
    ? [{ file: basename(options.what), path: resolve(options.what) }]
    : (await new DagFolder(folder).scan()).files;
  const results = await bundle(session, { folder, outFolder, files });
  return { ...(isFile ? pickFromFile(results, options) : pickById(results, options.what, folder)), folder };
}

type Picked = Omit<FoundDag, "folder">;

function pickFromFile(results: readonly BundleResult[], options: TestOptions): Picked {
  const [result] = results;
  if (result?.kind !== "bundled") throw brokenFile(result?.message ?? `${options.what} cannot be loaded.`);
  const ids = result.manifests.map((manifest) => manifest.dagId);
  if (ids.length === 0) {
    const made = result.unexported.length === 0 ? "" : ` It makes ${result.unexported.join(", ")}.`;
    throw usageError(`${options.what} exports no DAG.${made}`, "export it: export default dag(…)");
  }
  const dagId = options.dag ?? (ids.length === 1 ? ids[0] : undefined);
  if (dagId === undefined)
    throw usageError(`${options.what} exports several DAGs.`, `choose one with --dag: ${ids.join(", ")}`);
  const manifest = result.manifests.find((each) => each.dagId === dagId);
  if (manifest === undefined)
    throw usageError(`${options.what} does not export the DAG ${dagId}.`, `it exports: ${ids.join(", ")}`);
  return { bundle: result, manifest };
}

function pickById(results: readonly BundleResult[], dagId: string, folder: string): Picked {
  for (const result of results) {
    if (result.kind !== "bundled") continue;
    const manifest = result.manifests.find((each) => each.dagId === dagId);
    if (manifest !== undefined) return { bundle: result, manifest };
  }
  const broken = results.filter((result) => result.kind === "failed");
  if (broken.length > 0)
    throw brokenFile(
      `no file in ${folder} that loads has the DAG ${dagId}; these do not load:\n\n${broken.map((each) => each.message).join("\n\n")}`,
    );
  const ids = results.flatMap((each) => (each.kind === "bundled" ? each.manifests : []));
  const near = nearest(
    dagId,
    ids.map((manifest) => manifest.dagId),
  );
  throw new CliError("TW_CLI_NO_DAG", `no file in ${folder} exports the DAG ${dagId}.`, {
    exit: EXIT.notFound,
    remedy: `${near === undefined ? "" : `did you mean "${near}"? Or `}name the file itself, or its folder with --dags`,
  });
}

async function bundle(
  session: Session,
  work: { folder: string; outFolder: string; files: readonly DagFile[] },
): Promise<BundleResult[]> {
  const { BundlerPool } = await import("@tradewind/engine");
  const results: BundleResult[] = [];
  const pool = new BundlerPool({
    folder: work.folder,
    outFolder: work.outFolder,
    importTimeoutMs: IMPORT_TIMEOUT_MS,
    onOutput: (text) => session.note(text.trimEnd()),
  });
  try {
    await pool.bundle(work.files, { onResult: (_, result) => void results.push(result) });
  } finally {
    await pool.stop();
  }
  return results;
}

function brokenFile(message: string): CliError {
  return new CliError("TW_CLI_IMPORT", message, { exit: EXIT.failed });
}

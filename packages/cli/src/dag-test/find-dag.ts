import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { BundleResult, BundlerPool } from "@tradewind/engine";
import { nearest } from "@tradewind/sdk/wording";
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { SourcePaths } from "../output/source-paths.ts";
import type { Session } from "../session.ts";
import type { TestOptions } from "./parent.ts";
import type { Bundled } from "./write-bundle.ts";

type DagFile = Parameters<BundlerPool["bundle"]>[0][number];

const IMPORT_TIMEOUT_MS = 30_000;

export interface FoundDag {
  readonly bundle: Bundled;
  readonly manifest: Bundled["manifests"][number];
  /** The folder it was bundled in; names in its source map are relative to it. */
  readonly folder: string;
}

/** The bundle with the DAG: of the given file, or of the file in the DAG folder that exports this id. */
export async function findTestDag(
  session: Session,
  options: TestOptions,
  outFolder: string,
): Promise<FoundDag> {
  const { DagFolder, isCodeFile } = await import("@tradewind/engine");
  const isFile = isCodeFile(options.what);
  if (isFile && !existsSync(options.what)) {
    throw new CliError("TW_CLI_NO_FILE", `the file ${options.what} does not exist.`, { exit: EXIT.notFound });
  }
  const folder = resolve(
    isFile ? dirname(options.what) : options.dags || session.host.env.TRADEWIND_DAGS || "dags",
  );
  const files: readonly DagFile[] = isFile
    ? [{ file: basename(options.what), path: resolve(options.what) }]
    : (await new DagFolder(folder).scan()).files;
  const results = await bundle(session, { folder, outFolder, files });
  const paths = new SourcePaths([folder]);
  const shown = results.map(({ file, result }) => ({ file, result: withPaths(result, paths) }));
  const found = isFile ? pickFromFile(shown[0]?.result, options) : pickById(shown, options.what, folder);
  return { ...found, folder };
}

function withPaths(result: BundleResult, paths: SourcePaths): BundleResult {
  return result.kind === "failed" ? { ...result, message: paths.inImportError(result.message) } : result;
}

type Picked = Omit<FoundDag, "folder">;

interface FileResult {
  readonly file: string;
  readonly result: BundleResult;
}

function pickFromFile(result: BundleResult | undefined, options: TestOptions): Picked {
  if (result?.kind !== "bundled") throw brokenFile(result?.message ?? `${options.what} failed to load.`);
  const ids = result.manifests.map((manifest) => manifest.dagId);
  if (ids.length === 0) {
    const made =
      result.unexported.length === 0
        ? ""
        : ` It creates ${result.unexported.join(", ")} without exporting it.`;
    throw usageError(`${options.what} exports no DAG.${made}`, "add: export default dag(…)");
  }
  const dagId = options.dag ?? (ids.length === 1 ? ids[0] : undefined);
  if (dagId === undefined)
    throw usageError(`${options.what} exports several DAGs.`, `choose one with --dag: ${ids.join(", ")}`);
  const manifest = result.manifests.find((each) => each.dagId === dagId);
  if (manifest === undefined)
    throw usageError(`${options.what} does not export the DAG ${dagId}.`, `it exports: ${ids.join(", ")}`);
  return { bundle: result, manifest };
}

function pickById(results: readonly FileResult[], dagId: string, folder: string): Picked {
  const all = results.flatMap(({ file, result }) =>
    result.kind === "bundled" ? result.manifests.map((manifest) => ({ file, bundle: result, manifest })) : [],
  );
  const found = all.filter(({ manifest }) => manifest.dagId === dagId);
  if (found.length > 1) {
    const files = found.map(({ file }) => file).sort();
    throw usageError(
      `several files in ${folder} export the DAG ${dagId}: ${files.join(", ")}.`,
      "give the file instead of the DAG id, and rename one of the DAGs",
    );
  }
  if (found[0] !== undefined) return found[0];
  const broken = results.flatMap(({ result }) => (result.kind === "failed" ? [result.message] : []));
  if (broken.length > 0)
    throw brokenFile(
      `no loaded file in ${folder} exports the DAG ${dagId}; these files fail to load:\n\n${broken.join("\n\n")}`,
    );
  const near = nearest(
    dagId,
    all.map(({ manifest }) => manifest.dagId),
  );
  throw new CliError("TW_CLI_NO_DAG", `no file in ${folder} exports the DAG ${dagId}.`, {
    exit: EXIT.notFound,
    remedy: `${near === undefined ? "" : `did you mean "${near}"? Or `}give the file, or its folder with --dags`,
  });
}

async function bundle(
  session: Session,
  work: { folder: string; outFolder: string; files: readonly DagFile[] },
): Promise<FileResult[]> {
  const { BundlerPool } = await import("@tradewind/engine");
  const results: FileResult[] = [];
  const pool = new BundlerPool({
    folder: work.folder,
    outFolder: work.outFolder,
    importTimeoutMs: IMPORT_TIMEOUT_MS,
    onOutput: (text) => session.note(text.trimEnd()),
  });
  try {
    await pool.bundle(work.files, { onResult: ({ file }, result) => void results.push({ file, result }) });
  } finally {
    await pool.stop();
  }
  return results;
}

function brokenFile(message: string): CliError {
  return new CliError("TW_CLI_IMPORT", message, { exit: EXIT.failed });
}

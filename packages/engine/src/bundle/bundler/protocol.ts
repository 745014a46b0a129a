/**
 * The messages between the DAG processor and a bundler child. The child processes its files in order and announces each
 * import before it starts it: if the child dies or stops responding, the file it announced last is the suspect.
 */
import type { Bundled, InputStamp } from "../../code/bundled.ts";

/** One DAG file: `file` is its name in the catalogue (relative to the DAG folder, with "/"), `path` its location. */
export interface DagFile {
  readonly file: string;
  readonly path: string;
}

/** First message to a child. */
export interface BundlerSetup {
  readonly type: "setup";
  readonly folder: string;
  /** Where a child writes the modules it imports, and the shared chunks that the processor reads. */
  readonly outFolder: string;
}

/** `pass` counts the processor's passes: within one, shared inputs are read once. */
export type BundlerRequest = BundlerSetup | ({ readonly type: "bundle"; readonly pass: number } & DagFile);

export type BundlerReply =
  | { readonly type: "ready" }
  | { readonly type: "importing"; readonly file: string; readonly inputs: readonly InputStamp[] }
  | { readonly type: "done"; readonly file: string; readonly result: BundleResult }
  /** An error that surfaced after its import: part of no result, but logged. */
  | { readonly type: "stray"; readonly message: string };

/** Why a file has no DAGs. `message` is complete, with position and code frame. */
export interface ImportFailure {
  readonly kind: "failed";
  /** "bundle": not all inputs are known (one may be missing); "import": the inputs are complete. */
  readonly stage: "bundle" | "import";
  readonly message: string;
  readonly inputs: readonly InputStamp[];
}

export type BundleResult = Bundled | ImportFailure;

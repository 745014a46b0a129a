/**
 * What the DAG processor and a bundler child say to each other. The child works on the files it was given in order and
 * announces each import before it starts it, so that whatever happens next has one name: a child that dies or goes
 * silent is blamed on the file it announced last.
 */
import type { Bundled, InputStamp } from "../../code/bundled.ts";

/** One DAG file: `file` is its name in the catalogue (relative to the DAG folder, with "/"), `path` where it lies. */
export interface DagFile {
  readonly file: string;
  readonly path: string;
}

/** First message to a child. */
export interface BundlerSetup {
  readonly type: "setup";
  readonly folder: string;
  /** Where a child keeps what it imports, and the preludes that the processor reads. */
  readonly outFolder: string;
}

/** `pass` counts the processor's passes: within one, shared inputs are looked at once. */
export type BundlerRequest = BundlerSetup | ({ readonly type: "bundle"; readonly pass: number } & DagFile);

export type BundlerReply =
  | { readonly type: "ready" }
  | { readonly type: "importing"; readonly file: string; readonly inputs: readonly InputStamp[] }
  | { readonly type: "done"; readonly file: string; readonly result: BundleResult }
  /** An error that surfaced later than its import: nobody's result, but worth a line in the log. */
  | { readonly type: "stray"; readonly message: string };

/** Why a file gives no DAGs. `message` is complete, with position and code frame. */
export interface ImportFailure {
  readonly kind: "failed";
  /** "bundle": not all inputs are known (one may be missing); "import": the inputs are complete. */
  readonly stage: "bundle" | "import";
  readonly message: string;
  readonly inputs: readonly InputStamp[];
}

export type BundleResult = Bundled | ImportFailure;

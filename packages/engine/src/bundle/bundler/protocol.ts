/**
 * What the DAG processor and a bundler child say to each other. The child works on the files it was given in order and
 * announces each import before it starts it, so that whatever happens next has one name: a child that dies or goes
 * silent is blamed on the file it announced last.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { InstalledPackage } from "./installed-package.ts";

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

/** An input of an artefact as it was when the artefact was made. */
export interface InputStamp {
  readonly path: string;
  readonly mtimeMs: number;
  readonly size: number;
  readonly sha256: string;
}

/** A file with code that declares `name`. */
export interface PreludeFile {
  readonly name: string;
  readonly path: string;
}

/** A file whose content has this hash. */
export interface ContentFile {
  readonly hash: string;
  readonly path: string;
}

export interface Bundled {
  readonly kind: "bundled";
  readonly hash: string;
  /** The artefact's code: `banner`, then the content of these files, then `body`. */
  readonly banner: string;
  readonly preludes: readonly PreludeFile[];
  readonly body: string;
  /** The packages that the bundle requires, as they are installed here. */
  readonly installed: readonly InstalledPackage[];
  /** Files with the content of those that it requires. */
  readonly files: readonly ContentFile[];
  /** Its source map. */
  readonly map: string;
  /** The text of the DAG file that was bundled. */
  readonly source: string;
  readonly manifests: readonly DagManifest[];
  /** Ids of DAGs that the file makes and does not export. */
  readonly unexported: readonly string[];
  readonly inputs: readonly InputStamp[];
  /** False: an input was written while it was being read; the file must be bundled again. */
  readonly settled: boolean;
}

/** Why a file gives no DAGs. `message` is complete, with position and code frame. */
export interface ImportFailure {
  readonly kind: "failed";
  /** "bundle": not all inputs are known (one may be missing); "import": the inputs are complete. */
  readonly stage: "bundle" | "import";
  readonly message: string;
  readonly inputs: readonly InputStamp[];
}

export type BundleResult = Bundled | ImportFailure;

/** Part of every content hash: raised when the same code would give a different manifest or be run differently. */
export const ARTEFACT_FORMAT = 1;

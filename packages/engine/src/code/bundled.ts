/** A bundled DAG file. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { InstalledPackage } from "./installed-package.ts";

/** Part of every content hash: increased if the same code would produce a different manifest or run differently. */
export const ARTEFACT_FORMAT = 1;

/** An input of an artefact at the time of the build. */
export interface InputStamp {
  readonly path: string;
  readonly mtimeMs: number;
  readonly size: number;
  readonly sha256: string;
}

/** A file with code that declares `name`. */
export interface SharedChunkFile {
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
  readonly sharedChunks: readonly SharedChunkFile[];
  readonly body: string;
  /** The packages that the bundle requires, as they are installed here. */
  readonly installed: readonly InstalledPackage[];
  /** Files with the content of the required files. */
  readonly files: readonly ContentFile[];
  /** Its source map. */
  readonly map: string;
  /** The text of the DAG file that was bundled. */
  readonly source: string;
  readonly manifests: readonly DagManifest[];
  /** Ids of DAGs that the file creates and does not export. */
  readonly unexported: readonly string[];
  readonly inputs: readonly InputStamp[];
  /** False if an input was written while it was being read; then the file must be bundled again. */
  readonly settled: boolean;
}

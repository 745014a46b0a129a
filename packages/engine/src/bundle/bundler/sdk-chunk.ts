/**
 * The SDK's part of an artefact. Every DAG file carries its own copy of the SDK, but parsing, shaking and printing that
 * copy once per file is unnecessary: it is built once, as one expression, and put in front of each artefact; the DAG
 * file's imports become reads of its properties. A thousand small files then cost a thousand small builds.
 */
import { createHash } from "node:crypto";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Plugin, transform } from "esbuild";
import type { InputStamp } from "../../code/bundled.ts";
import { stampInputs } from "../../code/input-stamps.ts";
import { notTheSdk } from "./sdk-copy.ts";

export interface SdkChunk {
  /** A declaration of `name`, in lines of its own. */
  readonly code: string;
  readonly name: string;
  readonly exports: readonly string[];
  readonly inputs: readonly InputStamp[];
}

const NAMESPACE = "tradewind-sdk";
const RUNS_FROM_SOURCE = import.meta.url.endsWith(".ts");

/** The folder of the engine's own copy. */
export const OWN_SDK = dirname(fileURLToPath(import.meta.resolve("@tradewind/sdk")));

/** Both builds, of the SDK and of the DAG file, name packages in the same way. */
export const CODE_OPTIONS = {
  bundle: true,
  write: false,
  platform: "node",
  target: "node22",
  conditions: RUNS_FROM_SOURCE ? ["source"] : [],
  minifyWhitespace: true,
  // Operators are shown under their class name, which esbuild may otherwise change when two modules share one.
  keepNames: true,
  legalComments: "none",
  metafile: true,
  logLevel: "silent",
} as const satisfies BuildOptions;

export const PRINT_OPTIONS = {
  target: "node22",
  platform: "node",
  legalComments: "none",
  sourcesContent: false,
  logLevel: "silent",
} as const;

/** The shared chunks of one artefact. Usually one; two if a package brings its own SDK. */
export class SdkResolver {
  readonly sharedChunks = new Map<string, SdkChunk>();
  readonly plugin: Plugin;

  constructor(pass: number) {
    this.plugin = {
      name: NAMESPACE,
      setup: (esbuild) => {
        // A DAG's own copy comes first; a folder without one (no node_modules at all) gets the engine's.
        esbuild.onResolve({ filter: /^(tradewind|@tradewind\/sdk)(\/|$)/ }, async (args) => {
          if (args.pluginData === NAMESPACE) return undefined;
          const { importer, kind, resolveDir } = args;
          const found = await esbuild.resolve(args.path, {
            importer,
            kind,
            resolveDir,
            pluginData: NAMESPACE,
          });
          const path = found.errors.length === 0 ? found.path : ownPath(args.path);
          if (path === null) return undefined;
          const isMain = args.path === "tradewind" || args.path === "@tradewind/sdk";
          return { path, namespace: isMain ? NAMESPACE : "file", sideEffects: !isMain };
        });
        esbuild.onLoad({ filter: /.*/, namespace: NAMESPACE }, async ({ path }) => {
          const sharedChunk = await sdkChunk(path, pass);
          if (!sharedChunk.exports.includes("dag")) return { errors: [{ text: notTheSdk(path) }] };
          this.sharedChunks.set(sharedChunk.name, sharedChunk);
          return {
            contents: sharedChunk.exports.map((name) => reading(sharedChunk.name, name)).join("\n"),
            loader: "js",
          };
        });
      },
    };
  }
}

const known = new Map<string, { readonly pass: number; readonly sharedChunk: Promise<SdkChunk> }>();

/** Built once per process, and again if a pass finds that the SDK's files have changed. */
function sdkChunk(path: string, pass: number): Promise<SdkChunk> {
  const last = known.get(path);
  if (last?.pass === pass) return last.sharedChunk;
  const sharedChunk = last ? last.sharedChunk.then((old) => refreshed(path, old)) : buildSharedChunk(path);
  known.set(path, { pass, sharedChunk });
  sharedChunk.catch(() => known.delete(path));
  return sharedChunk;
}

async function refreshed(path: string, old: SdkChunk): Promise<SdkChunk> {
  const { stamps } = stampInputs(
    old.inputs.map((input) => input.path),
    Date.now(),
  );
  const isSame =
    stamps.length === old.inputs.length && stamps.every((s, i) => s.sha256 === old.inputs[i]?.sha256);
  return isSame ? old : buildSharedChunk(path);
}

async function buildSharedChunk(path: string): Promise<SdkChunk> {
  const folder = dirname(path);
  const options = { ...CODE_OPTIONS, entryPoints: [path], absWorkingDir: folder, outfile: "sdk.mjs" };
  const [module, expression] = await Promise.all([
    build({ ...options, format: "esm" }),
    build({ ...options, format: "iife", globalName: "tradewind_sdk" }),
  ]);
  const text = expression.outputFiles[0]?.text ?? "";
  const name = `tradewind_sdk_${createHash("sha256").update(text).digest("hex").slice(0, 8)}`;
  const printed = await transform(text.replace("tradewind_sdk", name), PRINT_OPTIONS);
  const paths = Object.keys(module.metafile.inputs).map((input) => resolve(folder, input));
  const { stamps } = stampInputs(paths, Date.now());
  const exports = Object.values(module.metafile.outputs)[0]?.exports ?? [];
  return { name, code: printed.code, exports: [...exports].sort(), inputs: stamps };
}

function ownPath(specifier: string): string | null {
  try {
    return fileURLToPath(import.meta.resolve(specifier.replace(/^tradewind(?=\/|$)/, "@tradewind/sdk")));
  } catch {
    return null;
  }
}

function reading(from: string, name: string): string {
  return name === "default"
    ? `export default ${from}.default;`
    : `export const ${name} = /* @__PURE__ */ (() => ${from}.${name})();`;
}

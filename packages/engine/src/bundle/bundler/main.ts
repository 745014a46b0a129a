/**
 * The bundler child: turns DAG files into artefacts and manifests. It runs authors' code, so it has no database, a
 * minimal environment and no state: the processor kills it when a file hangs and starts another.
 *
 * Files are built side by side (esbuild's own process does that work) but imported one after the other, each announced
 * before it starts. Side effects of a file in this process (timers, patched globals) can affect the next file; a file
 * that crashes or hangs is therefore tried once more in a child of its own before it fails.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { ContentFile, InputStamp } from "../../code/bundled.ts";
import { sha256, stampInput, stampInputs } from "../../code/input-stamps.ts";
import type { InstalledPackage } from "../../code/installed-package.ts";
import { dieWithParent } from "../../code/loader/orphan-watch.ts";
import { type Artefact, buildArtefact, isBuildFailure } from "./artefact.ts";
import { describeExports, refuseHiddenSubDags } from "./dag-exports.ts";
import { buildFailureMessage, isFrom, refusalMessage, thrownMessage } from "./failure.ts";
import { drainMadeDags, errorsOfAllDags, isOfRefusedDag } from "./made-dags.ts";
import { guardProcess } from "./process-guard.ts";
import type { BundleResult, BundlerReply, BundlerRequest, BundlerSetup, DagFile } from "./protocol.ts";
import { importForTrial } from "./trial-import.ts";
import { refuseTriggerClasses } from "./trigger-classes.ts";

// The author's line must be among the captured callers, below all frames of the SDK.
Error.stackTraceLimit = 50;
const channel = process.send?.bind(process);
if (!channel) throw new Error("The bundler is started by the DAG processor, not manually.");
// Authors' code shares this process and must not use the channel.
process.send = undefined;
/** Resolves when the message has left this process. */
const reply = (message: BundlerReply) =>
  new Promise<void>((resolve) => channel(message, undefined, undefined, () => resolve()));

let setup: BundlerSetup = { type: "setup", folder: process.cwd(), outFolder: process.cwd() };
let importing: Promise<unknown> = Promise.resolve();
const guard = guardProcess((message) => void reply({ type: "stray", message }));

dieWithParent();
process.on("disconnect", () => guard.exit(0));
process.on("message", (request: BundlerRequest) => {
  if (request.type === "setup") {
    setup = request;
    void reply({ type: "ready" });
    return;
  }
  const { file, path, pass } = request;
  void bundle({ file, path }, pass).then((result) => reply({ type: "done", file, result }));
});

async function bundle(dagFile: DagFile, pass: number): Promise<BundleResult> {
  const inputs: InputStamp[] = [];
  try {
    // The stamp is taken before the text: a write in between shows as a changed stamp, never as a missed change.
    const own = stampInput(dagFile.path);
    const source = readFileSync(dagFile.path, "utf8");
    if (own) inputs.push({ ...own, sha256: sha256(source) });
    const startedAt = Date.now();
    const artefact = await buildArtefact(setup.folder, { ...dagFile, text: source }, pass);
    const { stamps, settled } = stampInputs(artefact.imports, startedAt);
    inputs.push(...stamps, ...artefact.sharedChunks.flatMap((sharedChunk) => sharedChunk.inputs));
    const turn = importing.then(() => importArtefact(dagFile, artefact, inputs));
    importing = turn.catch(() => undefined);
    const outcome = await turn;
    if (typeof outcome === "string") return { kind: "failed", stage: "import", message: outcome, inputs };
    const { hash, banner, body, installed, map } = artefact;
    const files = handOver(artefact);
    return {
      kind: "bundled",
      hash,
      banner,
      body,
      installed,
      files,
      map,
      ...outcome,
      source,
      inputs,
      settled,
    };
  } catch (error) {
    const message = isBuildFailure(error)
      ? buildFailureMessage(setup.folder, dagFile, error)
      : refusalMessage(dagFile, error);
    return { kind: "failed", stage: "bundle", message, inputs };
  }
}

/** The processor reads the files from there. Named by content: children that write the same file write the same bytes. */
function handOver({ files }: Artefact): ContentFile[] {
  const byHash = new Map([...files.values()].map(({ content, hash }) => [hash, content]));
  return [...byHash].map(([hash, content]) => {
    const path = join(setup.outFolder, `file-${hash}-${process.pid}`);
    writeFileSync(path, content);
    return { hash, path };
  });
}

function withPackages(manifest: DagManifest, { requirements: { packages } }: Artefact): DagManifest {
  return Object.keys(packages).length === 0 ? manifest : { ...manifest, packages };
}

const loadedVersions = new Map<string, string>();

function hasOtherVersion(packages: readonly InstalledPackage[]): boolean {
  const isOther = packages.some(({ folder, version }) => (loadedVersions.get(folder) ?? version) !== version);
  for (const { folder, version } of packages) loadedVersions.set(folder, version);
  return isOther;
}

/** The DAGs of the file, or its error. */
async function importArtefact(dagFile: DagFile, artefact: Artefact, inputs: readonly InputStamp[]) {
  const { url, sharedChunks, discard } = await importForTrial(setup.outFolder, artefact);
  // An endless loop would block pending messages: this one, and the results of earlier files.
  await reply({ type: "importing", file: dagFile.file, inputs });
  // Node keeps a loaded package: a file that needs another version of it gets a fresh child from the processor.
  if (hasOtherVersion(artefact.installed)) guard.exit(0);
  const imported = { folder: setup.folder, url, map: artefact.map };
  const attempt = guard.begin(url);
  drainMadeDags();
  try {
    const exports = (await Promise.race([import(url), attempt.slipped])) as Record<string, unknown>;
    const manifests = describeExports(exports).map((manifest) => withPackages(manifest, artefact));
    await attempt.settled();
    const exported = new Set(manifests.map(({ dagId }) => dagId));
    // DAGs of other DAG files that this one imports are exported there.
    const unexported = drainMadeDags().filter(
      ({ id, trace }) => !exported.has(id) && isFrom(dagFile, imported, trace),
    );
    const made = unexported.map(({ id }) => id);
    refuseHiddenSubDags(manifests, made);
    refuseTriggerClasses(exports, manifests);
    return { sharedChunks, manifests, unexported: made };
  } catch (error) {
    return (
      (isOfRefusedDag(error) ? await refusedDags(dagFile, artefact) : null) ??
      thrownMessage(dagFile, imported, error)
    );
  } finally {
    guard.end();
    discard();
  }
}

/** The first wrong DAG ended the import: the file is imported again, past each wrong DAG, to collect all errors. */
async function refusedDags(dagFile: DagFile, artefact: Artefact): Promise<string | null> {
  const { url, discard } = await importForTrial(setup.outFolder, artefact);
  const { slipped } = guard.begin(url);
  try {
    const errors = await errorsOfAllDags(() => Promise.race([import(url), slipped]));
    const all = new AggregateError(errors);
    const imported = { folder: setup.folder, url, map: artefact.map };
    return errors.length === 0 ? null : thrownMessage(dagFile, imported, all);
  } finally {
    discard();
  }
}

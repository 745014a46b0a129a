/** The types of objects that KEDA adds to a cluster, from its Go module. KEDA itself does not run in the tests. */
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { helm } from "./chart.ts";

const MODULE = "github.com/kedacore/keda/v2@v2.21.0";
const FILES = ["keda.sh_scaledobjects.yaml", "keda.sh_triggerauthentications.yaml"];

/** Resolves when the API server accepts objects of these types. */
export async function installKedaDefinitions(kubeconfig: string): Promise<void> {
  const source = join(await moduleFolder(), "config/crd/bases");
  const chart = await mkdtemp(join(tmpdir(), "tw-keda-"));
  try {
    await writeFile(join(chart, "Chart.yaml"), "apiVersion: v2\nname: keda-definitions\nversion: 1.0.0\n");
    await mkdir(join(chart, "crds"));
    for (const file of FILES) await copyFile(join(source, file), join(chart, "crds", file));
    await helm(["install", "keda-definitions", chart], { kubeconfig });
  } finally {
    await rm(chart, { recursive: true });
  }
}

async function moduleFolder(): Promise<string> {
  const download = promisify(execFile)("go", ["mod", "download", "-json", MODULE], {
    env: { ...process.env, GOFLAGS: "", GOWORK: "off" },
  });
  const { stdout } = await download.catch((error: Error & { stdout?: string }) => {
    throw new Error(
      `${MODULE} could not be downloaded: ${error.stdout || error.message}\nInstall Go 1.26 or newer.`,
    );
  });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

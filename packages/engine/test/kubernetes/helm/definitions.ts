/**
 * The types of objects that KEDA and the Prometheus Operator add to a cluster, from their Go modules. Neither runs in the
 * tests.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { helm } from "./chart.ts";

interface Definitions {
  readonly module: string;
  readonly folder: string;
  readonly files: readonly string[];
}

const KEDA: Definitions = {
  module: "github.com/kedacore/keda/v2@v2.21.0",
  folder: "config/crd/bases",
  files: ["keda.sh_scaledobjects.yaml", "keda.sh_triggerauthentications.yaml"],
};
const PROMETHEUS_OPERATOR: Definitions = {
  module: "github.com/prometheus-operator/prometheus-operator@v0.92.1",
  folder: "example/prometheus-operator-crd",
  files: ["monitoring.coreos.com_servicemonitors.yaml", "monitoring.coreos.com_podmonitors.yaml"],
};

/** Resolves when the API server accepts objects of these types. */
export async function installDefinitions(kubeconfig: string): Promise<void> {
  const chart = await mkdtemp(join(tmpdir(), "tw-definitions-"));
  try {
    await writeFile(join(chart, "Chart.yaml"), "apiVersion: v2\nname: definitions\nversion: 1.0.0\n");
    await mkdir(join(chart, "crds"));
    for (const definitions of [KEDA, PROMETHEUS_OPERATOR])
      for (const path of await definitionFiles(definitions))
        await copyFile(path, join(chart, "crds", basename(path)));
    await helm(["install", "definitions", chart], { kubeconfig });
  } finally {
    await rm(chart, { recursive: true });
  }
}

async function definitionFiles({ files, folder, module }: Definitions): Promise<string[]> {
  const download = promisify(execFile)("go", ["mod", "download", "-json", module], {
    env: { ...process.env, GOFLAGS: "", GOWORK: "off" },
  });
  const { stdout } = await download.catch((error: Error & { stdout?: string }) => {
    throw new Error(
      `${module} could not be downloaded: ${error.stdout || error.message}\nInstall Go 1.26 or newer.`,
    );
  });
  const { Dir: source } = JSON.parse(stdout) as { Dir: string };
  return files.map((file) => join(source, folder, file));
}

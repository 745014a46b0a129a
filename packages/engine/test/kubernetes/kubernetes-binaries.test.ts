import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { controlPlane, kwokBinary } from "./kubernetes-binaries.ts";

let folder: string;

describe("binaries of the Kubernetes tests", () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tw-binaries-"));
    vi.stubEnv("KUBEBUILDER_ASSETS", undefined);
    vi.spyOn(console, "log").mockReturnValue();
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    await rm(folder, { recursive: true });
  });

  it("names the remedies if Go is missing", async () => {
    vi.stubEnv("PATH", folder);
    await expect(kwokBinary(folder)).rejects.toThrow(
      "kwok is missing, and so is Go to build it. Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder that contains kwok.",
    );
  });

  it("are built once for concurrent callers, and taken from the cache afterwards", async () => {
    await program("go", `echo "$PWD" >> ${folder}/builds; while [ "$1" != -o ]; do shift; done; echo > "$2"`);
    await Promise.all([kwokBinary(folder), kwokBinary(folder)]);
    expect(await kwokBinary(folder)).toBe(join(folder, "kwok"));
    const builds = (await readFile(join(folder, "builds"), "utf8")).trim().split("\n");
    expect(builds).toEqual([expect.stringMatching(/modules\/kwok$/)]);
  });

  it("are not taken from a failed build, whose error has the reason", async () => {
    await program("go", 'echo "go: no network" >&2; exit 1');
    await expect(kwokBinary(folder)).rejects.toThrow("kwok could not be built.\ngo: no network\nInstall Go");
    await expect(kwokBinary(folder)).rejects.toThrow("kwok could not be built.");
  });

  it("are taken from KUBEBUILDER_ASSETS if that folder has them", async () => {
    await program("etcd", "");
    await program("kube-apiserver", "");
    vi.stubEnv("KUBEBUILDER_ASSETS", folder);
    const apiserver = join(folder, "kube-apiserver");
    expect(await controlPlane()).toEqual({ apiserver, etcd: join(folder, "etcd") });
  });
});

/** A shell script, first on the PATH. */
async function program(name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, name), 0o755);
  vi.stubEnv("PATH", `${folder}${delimiter}${process.env.PATH}`);
}

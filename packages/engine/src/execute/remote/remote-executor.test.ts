import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";
import { LogFolder } from "../../log/log-folder.ts";
import { silentLogger } from "../../service/logger.ts";
import type { ExecutorConfig } from "../contract.ts";
import type { Launcher, LauncherHost, LaunchRequest } from "./launcher.ts";
import { RemoteExecutor } from "./remote-executor.ts";

const CONFIG: ExecutorConfig = { podOverride: { spec: { nodeSelector: { disk: "ssd" } } } };

/** Starts nothing: the assignments stay unclaimed. */
class RecordingLauncher implements Launcher {
  readonly launched: LaunchRequest[] = [];
  host: LauncherHost | null = null;
  #onLaunch = Promise.withResolvers<void>();

  async start(host: LauncherHost): Promise<void> {
    this.host = host;
  }

  launch(requests: readonly LaunchRequest[]): void {
    this.launched.push(...requests);
    this.#onLaunch.resolve();
    this.#onLaunch = Promise.withResolvers();
  }

  async launches(count: number): Promise<readonly LaunchRequest[]> {
    while (this.launched.length < count) await this.#onLaunch.promise;
    return this.launched;
  }

  async stop(): Promise<void> {}
}

let tw: Installation;
let launcher: RecordingLauncher;
let executor: RemoteExecutor;
let under: ExecutorUnderTest;

beforeEach(async () => {
  tw = await Installation.open();
  under = await ExecutorUnderTest.start();
  launcher = new RecordingLauncher();
  const { database, secretBox } = tw.options;
  const options = {
    name: "pods",
    type: "module",
    logs: new LogFolder(join(under.dir, "logs")),
    database,
    launcher,
    parallelism: 8,
    secretBox,
    logger: silentLogger,
  };
  executor = new RemoteExecutor({ ...options, onCancels: () => {} });
  await executor.start(() => {});
});

afterEach(async () => {
  await executor.stop();
  await under[Symbol.asyncDispose]();
});

it("gives the launcher the executorConfig of an attempt, and the worker none of it", async () => {
  await tw.addDag(manifestOf("sales", [{ taskId: "load" }]));
  const dagRunId = await tw.addRun("sales");
  const id = randomUUID();
  await tw.addInstance(dagRunId, "load", { state: "queued", attempt: id });
  const attempt = under.assignment("load", { id, dagRunId, queue: "big", priority: 3 });
  executor.submit([{ ...attempt, config: CONFIG }]);
  const request = { id, queue: "big", priority: 3, config: CONFIG };
  expect(await launcher.launches(1)).toEqual([request]);
  expect(await launcher.host?.unclaimed({ waitedMs: 0, limit: 10 })).toMatchObject([request]);
  expect(await tw.sql("SELECT config, content->'config' AS content FROM assignment")).toEqual([
    { config: CONFIG, content: null },
  ]);
});

it("launches an adopted attempt again with its executorConfig", async () => {
  const id = randomUUID();
  executor.adopt([{ id, queue: "big", priority: 3, config: CONFIG, isClaimed: false }]);
  expect(await launcher.launches(1)).toMatchObject([{ id, config: CONFIG }]);
});

/** The large outputs of one process, by its configuration, with their rows in the database. */
import { setTimeout as sleep } from "node:timers/promises";
import { LargeOutputs } from "../output/large-outputs.ts";
import type { Config } from "../service/config.ts";
import { outputFolder } from "../service/home.ts";
import { type Database, isTransient } from "../store/database/database.ts";
import { registerObject } from "../store/output/output-objects.ts";

const PATIENCE_MS = 30_000;

export function createLargeOutputs(config: Config, database: Database): LargeOutputs {
  return new LargeOutputs({
    store: config.outputStore,
    folder: outputFolder(config.home),
    limits: { inline: config.outputInlineLimit, most: config.outputLimit },
    register: (object) => patiently(() => registerObject(database, object)),
  });
}

/** A task's output must not be lost because the database was briefly unavailable. A surplus row is swept. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, 1_000)) {
    try {
      return await ask();
    } catch (error) {
      if (!isTransient(error) || performance.now() > deadline) throw error;
      await sleep(waitMs);
    }
  }
}

/** Writes, reads and removes an object of the configured store. Returns its location. @throws the error of the store. */
export async function probeOutputStore(config: Config): Promise<string> {
  const folder = outputFolder(config.home);
  const outputs = new LargeOutputs({
    store: config.outputStore,
    folder,
    limits: { inline: config.outputInlineLimit, most: config.outputLimit },
    register: () => Promise.reject(new Error("a probe stores no output")),
  });
  try {
    await outputs.probe();
    return config.outputStore === "file:" ? folder : config.outputStore;
  } finally {
    await outputs.close();
  }
}

/** The large outputs of one process, by its configuration, with their rows in the database. */
import { LargeOutputs } from "../../output/large-outputs.ts";
import type { Config } from "../../service/config.ts";
import { outputFolder } from "../../service/home.ts";
import type { Database } from "../../store/database/database.ts";
import { retryTransient } from "../../store/database/transient-retry.ts";
import { registerObject } from "../../store/output/output-objects.ts";

export function createLargeOutputs(config: Config, database: Database): LargeOutputs {
  return new LargeOutputs({
    store: config.outputStore,
    folder: outputFolder(config.home),
    limits: { inline: config.outputInlineLimit, most: config.outputLimit },
    // A task's output must not be lost because the database was briefly unavailable. A surplus row is swept.
    register: (object) => retryTransient(() => registerObject(database, object)),
  });
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

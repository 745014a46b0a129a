/** The store of task logs, by the configuration. */
import { randomUUID } from "node:crypto";
import type { LogStore } from "../../log/log-store.ts";
import { openLogStore } from "../../log/open-log-store.ts";
import type { Config } from "../../service/config.ts";
import { logFolder } from "../../service/home.ts";

type LogSettings = Pick<Config, "home" | "logStore">;

/** To be closed by the caller. */
export function openLogs({ home, logStore }: LogSettings): Promise<LogStore> {
  return openLogStore(logStore, logFolder(home));
}

/** Writes, reads and removes a log of the configured store. Returns its location. @throws the error of the store. */
export async function probeLogStore(config: LogSettings): Promise<string> {
  const logs = await openLogs(config);
  // Ids of DAGs do not begin with a dot.
  const folder = `.probe-${randomUUID()}`;
  const text = Buffer.from("{}\n");
  try {
    await logs.append(`${folder}/probe.log`, 0, text);
    const [log] = await Array.fromAsync(logs.view([folder]).changed({ isAll: true }));
    if (!log || !(await log.read(0, log.size)).equals(text)) throw new Error("a written log was not found");
    await logs.remove(folder);
    return config.logStore === "file:" ? logFolder(config.home) : config.logStore;
  } finally {
    await logs.close();
  }
}

/** The checks of `tradewind doctor`, ordered so that an earlier failure explains later ones. */
import type { Session } from "../session.ts";
import { readConfiguration } from "./configuration-check.ts";
import { checkDagFiles } from "./dag-files-check.ts";
import { checkDatabase } from "./database-check.ts";
import { checkHome, checkNode } from "./machine-checks.ts";
import { checkServer } from "./server-checks.ts";
import { checkStores } from "./store-check.ts";

export interface Check {
  readonly name: string;
  readonly result: "ok" | "warn" | "fail";
  readonly says: string;
  readonly remedy?: string;
  /** For a summary: the number of objects it stands for. */
  readonly count?: number;
}

export async function* checkInstallation(session: Session): AsyncGenerator<Check> {
  yield checkNode(process.versions.node);
  yield* checkHome(session.home);
  const config = await readConfiguration(session);
  if ("says" in config) yield config;
  else {
    yield* checkDatabase(session, config);
    yield* checkStores(session, config);
  }
  yield* checkServer(session, "says" in config ? null : config);
  yield* checkDagFiles(session.home);
}

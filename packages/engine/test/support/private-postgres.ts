import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning } from "../../src/service/process-identity.ts";
import { EmbeddedPostgres } from "../../src/store/embedded/embedded-postgres.ts";
import { afterFile } from "./after-file.ts";
import { seedFolder } from "./seed-folder.ts";

/** A server of its own, durable as in production, for tests that stop, kill or restart it. */
export interface PrivatePostgres {
  readonly server: EmbeddedPostgres;
  /** A migrated database; the port stays the same over restarts. */
  readonly url: string;
  /** Ends it without a shutdown checkpoint: "immediate" as an operator would, "kill" as the out-of-memory killer does. */
  crash(how?: "immediate" | "kill"): Promise<void>;
  /** Starts it again after a crash or stop, through recovery. */
  resume(): Promise<void>;
  restart(mode?: "fast" | "immediate"): Promise<void>;
  close(): Promise<void>;
}

export async function privatePostgres(
  options: { readonly settings?: Readonly<Record<string, string | number>> } = {},
): Promise<PrivatePostgres> {
  const home = await mkdtemp(join(tmpdir(), "tw-private-"));
  await seedFolder(join(home, "postgres"));
  const server = await EmbeddedPostgres.start({
    dataDir: join(home, "postgres"),
    settings: options.settings,
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= server.stop("immediate").then(() => rm(home, { recursive: true, force: true }));
    return closing;
  };
  opened.push(close);
  return {
    server,
    url: server.url,
    crash: async (how = "immediate") => {
      if (how === "immediate") return server.stop("immediate");
      process.kill(server.pid, "SIGKILL");
      while (isRunning(server.pid)) await sleep(5);
    },
    resume: () => server.resume(),
    restart: (mode = "fast") => server.restart(mode),
    close,
  };
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});

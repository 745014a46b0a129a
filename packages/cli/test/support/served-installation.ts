import { Installation } from "../../../engine/test/api/installation.ts";
import { type Captured, runCaptured } from "./captured-host.ts";

export interface ServedInstallation {
  readonly server: Installation;
  readonly url: string;
  /** Runs a command line as a client of this server. */
  readonly tw: (...argv: string[]) => Promise<Captured>;
  /** The same on a terminal of 80 columns, without colours. */
  readonly on80Columns: (...argv: string[]) => Promise<Captured>;
}

/** An installation whose API listens on a free port. */
export async function servedInstallation(): Promise<ServedInstallation> {
  const server = await Installation.open();
  const url = await server.app.listen({ host: "127.0.0.1", port: 0 });
  const env = { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token };
  return {
    server,
    url,
    tw: (...argv) => runCaptured(argv, { env }),
    on80Columns: (...argv) => runCaptured(argv, { env: { ...env, NO_COLOR: "1" }, columns: 80 }),
  };
}

/** The REST API in front of a signal service, on a real port. */

import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { createApi } from "../../src/api/server/api.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import { passOn } from "../../src/process/api.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { ensureAdminToken } from "../../src/store/access/tokens.ts";
import { Database } from "../../src/store/database/database.ts";

export const TOKEN = "tw_signal_front_token";

export async function serveApi(databaseUrl: string, notify = true) {
  const database = Database.connect(databaseUrl, { max: 12 });
  await ensureAdminToken(database, TOKEN);
  const wakeUps = new WakeUps(database, { enabled: notify });
  const app = await createApi({
    database,
    logger: silentLogger,
    config: { host: "127.0.0.1", port: 0, version: "0.1.0-test" },
    secretBox: new SecretBox([randomBytes(32)]),
    logs: new LogFolder(tmpdir()),
    wakeUps,
    notify: (change) => passOn(change, wakeUps),
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    app,
    url,
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
      await wakeUps.close();
      await database.close();
    },
  };
}

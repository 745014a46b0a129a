import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { resolveConfig } from "../service/config.ts";
import { newToken } from "../service/home.ts";
import { SignalClient } from "../signal/grpc/client.ts";
import { createToken } from "../store/access/tokens.ts";
import { startSignalServer } from "./signal-server.ts";

it("serves signals to a token of the role admin, and refuses that of a worker", async () => {
  const { db, url } = await testDatabase();
  const home = await mkdtemp(join(tmpdir(), "tw-signals-"));
  const config = resolveConfig(
    { home },
    { DATABASE_URL: url, TRADEWIND_SIGNALS_PORT: "0", TRADEWIND_LOG_LEVEL: "error" },
  );
  const server = await startSignalServer(config);
  onTestFinished(async () => {
    await server.stop();
    await rm(home, { recursive: true });
  });
  const send = async (role: "admin" | "worker") => {
    const token = newToken();
    await createToken(db, { name: role, token, role, expiresAt: null });
    const client = SignalClient.connect(server.url, { token });
    try {
      return await client.send([{ key: "k", value: 1 }]);
    } finally {
      await client.close();
    }
  };
  await expect(send("admin")).resolves.toHaveLength(1);
  await expect(send("worker")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
});

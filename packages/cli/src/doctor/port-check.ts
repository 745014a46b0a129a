import { createServer } from "node:net";
import type { Check } from "./checks.ts";

/** Whether `standalone` could listen where it would: asked only when none is running. */
export function checkPort(env: NodeJS.ProcessEnv): Promise<Check> {
  const host = env.TRADEWIND_HOST || "127.0.0.1";
  const port = Number(env.TRADEWIND_PORT || 8080);
  const name = "port";
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    return Promise.resolve({
      name,
      result: "fail",
      says: `TRADEWIND_PORT is "${env.TRADEWIND_PORT}"`,
      remedy: "set it to a number from 0 to 65535",
    });
  }
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const says =
        error.code === "EADDRINUSE"
          ? `${host}:${port} is taken by another program`
          : `${host}:${port}: ${error.message}`;
      resolve({ name, result: "warn", says, remedy: "choose another: --port or TRADEWIND_PORT" });
    });
    server.listen({ host, port, exclusive: true }, () => {
      server.close(() => resolve({ name, result: "ok", says: `${host}:${port} is free` }));
    });
  });
}

import { createServer } from "node:net";
import type { Config } from "@tradewind/engine";
import type { Check } from "./checks.ts";

/** Whether `standalone` could listen on its address. Called only if none is running. */
export function checkPort({ host, port }: Config): Promise<Check> {
  const name = "port";
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const says =
        error.code === "EADDRINUSE"
          ? `${host}:${port} is in use by another program`
          : `${host}:${port}: ${error.message}`;
      resolve({ name, result: "warn", says, remedy: "choose another port: --port or TRADEWIND_PORT" });
    });
    server.listen({ host, port, exclusive: true }, () => {
      server.close(() => resolve({ name, result: "ok", says: `${host}:${port} is free` }));
    });
  });
}

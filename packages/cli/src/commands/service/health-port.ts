/**
 * Answers the probes of a container platform: /live while the event loop turns, /ready while the service has started and its
 * lease is held; and /metrics, of this process. Over HTTP: a program that is executed in the container would have the secrets of its environment.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";

export interface HealthPort {
  close(): void;
}

/** Begins to listen at once: a service that waits for its database is live. */
export async function openHealthPort(env: NodeJS.ProcessEnv, isReady: () => boolean): Promise<HealthPort> {
  const { EngineError, METRICS_TYPE, processMetrics, resolveConfig } = await import("@tradewind/engine");
  const { healthPort, host } = resolveConfig({}, env);
  const sendMetrics = (response: ServerResponse) =>
    processMetrics().then(
      (text) => response.setHeader("content-type", METRICS_TYPE).end(text),
      () => response.writeHead(500).end(),
    );
  const server = createServer((request, response) => {
    if (request.url === "/metrics") return void sendMetrics(response);
    const isGood = { "/live": () => true, "/ready": isReady }[request.url ?? ""];
    response.statusCode = isGood === undefined ? 404 : isGood() ? 200 : 503;
    return response.end();
  });
  server.listen(healthPort, host);
  await once(server, "listening").catch((cause: NodeJS.ErrnoException) => {
    const message = `TRADEWIND_HEALTH_PORT: cannot listen on ${host}:${healthPort} (${cause.code}). Give each service on this machine a port of its own.`;
    throw new EngineError("CONFIG_INVALID", message, {
      cause,
      details: { setting: "TRADEWIND_HEALTH_PORT" },
    });
  });
  return {
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The process of one peer, with its own PostgreSQL; receives the shapes to run over IPC. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmbeddedPostgres } from "../../packages/engine/src/store/embedded/embedded-postgres.ts";
import type { OpenPeer } from "./peer.ts";

export type HostRequest = { readonly shape: "a" | "b" | "d" } | { readonly stop: true };
export type HostReply =
  | { readonly ready: { readonly note: string } }
  | { readonly ms: number; readonly tasks: number }
  | { readonly error: string };

const name = process.argv[2] ?? "";
const send = (reply: HostReply) => process.send?.(reply);

try {
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-peer-"));
  const server = await EmbeddedPostgres.start({ dataDir: join(root, "postgres") });
  const { open } = (await import(`./${name}.ts`)) as { open: OpenPeer };
  const peer = await open(server.url);
  const work = async (request: HostRequest): Promise<void> => {
    if ("stop" in request) {
      // A connection that a peer leaves open breaks when its server stops.
      process.on("uncaughtException", () => {});
      await peer.close().catch(() => {});
      await server.stop("fast");
      await rm(root, { recursive: true, force: true });
      process.exit(0);
    }
    const tasks = { a: 100, b: 1_002, d: peer.independentTasks }[request.shape];
    const started = performance.now();
    if (request.shape === "a") await peer.chain(tasks);
    else if (request.shape === "b") await peer.fan(tasks - 2);
    else await peer.independent(tasks);
    send({ ms: performance.now() - started, tasks });
  };
  process.on("message", (request: HostRequest) => {
    work(request).catch((error) =>
      send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
  });
  send({ ready: { note: peer.note } });
} catch (error) {
  send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}

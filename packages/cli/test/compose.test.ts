/**
 * deploy/compose.yaml without a container engine: the commands of its services run as processes with their variables. Only
 * the names of hosts are replaced, and ports and folders are added.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { freePort } from "../../engine/test/support/free-port.ts";
import { redisServer } from "../../engine/test/support/redis-server.ts";
import { testDatabase } from "../../engine/test/support/test-database.ts";
import { runCli, StandaloneProcess, spawnCli } from "./support/standalone-process.ts";

const ROOT = join(import.meta.dirname, "../../..");

interface Service {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly profiles?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly deploy?: { readonly replicas: number };
}

/** As Compose reads it, with these variables of the shell. */
function services(shell: Readonly<Record<string, string>>): Readonly<Record<string, Service>> {
  const text = readFileSync(join(ROOT, "deploy/compose.yaml"), "utf8");
  const filled = text.replace(/\$\{(\w+):-([^}]*)\}/g, (_, name, otherwise) => shell[name] || otherwise);
  return (parse(filled, { merge: true }) as { services: Record<string, Service> }).services;
}

describe("compose file", () => {
  let folder: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tradewind-compose-"));
    await cp(join(ROOT, "examples/hello.ts"), join(folder, "dags/hello.ts"));
  });

  afterEach(async () => {
    for (const child of children.splice(0).reverse()) {
      if (child.exitCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  });

  function start({ command }: Service, args: readonly string[], env: NodeJS.ProcessEnv): StandaloneProcess {
    const child = spawnCli([...command, ...args], env, folder);
    children.push(child);
    return new StandaloneProcess(folder, child);
  }

  async function startServer(service: Service, hosts: Readonly<Record<string, string>>) {
    const args = ["--port", "0", "--home", join(folder, "home"), "--dags", join(folder, "dags")];
    const server = start(service, args, replaced(service, hosts));
    await server.until(/Tradewind is running/);
    return server;
  }

  it("runs DAGs on a server with PostgreSQL", async () => {
    const { url } = await testDatabase({ empty: true });
    const { server } = services({});
    const running = await startServer(server!, {
      "postgresql://tradewind:tradewind@postgres:5432/tradewind": url,
    });
    await running.until(/✓ hello .*success/);
  });

  it("runs DAGs on its workers, with the token of the docs", async () => {
    const { url } = await testDatabase({ empty: true });
    const { port } = await redisServer();
    const hosts: Record<string, string> = {
      "postgresql://tradewind:secret@postgres:5432/tradewind": url,
      "redis://redis:6379": `redis://127.0.0.1:${port}`,
    };
    const shell = {
      POSTGRES_PASSWORD: "secret",
      TRADEWIND_EXECUTOR: "queue",
      REDIS_URL: "redis://redis:6379",
    };
    const server = await startServer(services(shell).server!, hosts);
    hosts["http://server:8080"] = (await server.about()).url;
    const create = ["tokens", "create", "workers", "--role", "worker"];
    const { stdout } = await runCli(create, { TRADEWIND_HOME: join(folder, "home") });
    const { worker } = services({ ...shell, TRADEWIND_WORKER_TOKEN: stdout.trim() });
    expect(worker?.profiles).toEqual(["workers"]);
    expect(worker?.environment).not.toHaveProperty("DATABASE_URL");
    expect(server.stderr).not.toContain("✓ hello");
    const replicas = Array.from({ length: worker?.deploy?.replicas ?? 1 });
    const ports = await Promise.all(replicas.map(freePort));
    const workers = ports.map((port, at) => {
      const environment = { ...replaced(worker!, hosts), TRADEWIND_HEALTH_PORT: `${port}` };
      return start(worker!, ["--home", join(folder, `worker-${at}`)], environment);
    });
    expect(workers).toHaveLength(2);
    expect(await checkHealth(worker!, ports[0]!)).not.toBe(0);
    await Promise.all(workers.map((each) => each.until(/The worker is running: 4 slots for default/)));
    expect(await checkHealth(worker!, ports[0]!)).toBe(0);
    await server.until(/✓ hello .*success/);
  }, 120_000);
});

/** Runs the command of the service's health check. */
async function checkHealth({ environment, healthcheck }: Service, port: number): Promise<number | null> {
  const [, , ...args] = healthcheck!.test.map((part) =>
    part.replace(environment.TRADEWIND_HEALTH_PORT!, `${port}`),
  );
  const [code] = (await once(spawn(process.execPath, args), "exit")) as [number | null];
  return code;
}

/** The environment of the service, at the addresses of this test. */
function replaced({ environment }: Service, hosts: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, hosts[value] ?? `${value ?? ""}`]),
  );
}

/** The way from a worker to the API: TLS with a CA of one's own, and HTTP proxies. */
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ApiProxy } from "../../../test/support/api-proxy.ts";
import { certificate } from "../../../test/support/certificates.ts";
import { isAlive } from "../../../test/support/process-alive.ts";
import { WorkerRig } from "../../../test/support/worker-rig.ts";
import { createToken, deleteToken } from "../../store/access/tokens.ts";
import { adhoc } from "../../store/database/database.ts";
import { ExecutionClient } from "./execution-client.ts";

const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];
const AUTHORIZATION = `Basic ${Buffer.from("ann:pass").toString("base64")}`;

const DAGS = `
  import { dag } from "tradewind";
  export default dag("large", {}, (d) => {
    const big = d.task("big", (_, ctx) => {
      ctx.log.info("made");
      return "x".repeat(3_000_000);
    });
    d.task("read", { inputs: { big } }, ({ big }) => big.length);
  });
  export const endless = dag("endless", {}, (d) => {
    d.task("t", () => new Promise((resolve) => setTimeout(resolve, 3_600_000)));
  });
`;

/** A forward proxy: tunnels for TLS (CONNECT), whole addresses for the rest. */
class ForwardProxy {
  readonly tunnels: string[] = [];
  readonly requests: string[] = [];
  readonly authorizations = new Set<string | undefined>();
  #url = "";

  static async open(): Promise<ForwardProxy> {
    const proxy = new ForwardProxy();
    const server = createServer((incoming, answer) => {
      proxy.#seen(incoming);
      proxy.requests.push(incoming.url ?? "");
      const { headers, method, url } = incoming;
      const sent = request(new URL(url ?? ""), { method, headers }, (response) => {
        answer.writeHead(response.statusCode ?? 500, response.headers);
        response.pipe(answer);
      });
      sent.on("error", () => answer.destroy());
      incoming.pipe(sent);
    });
    server.on("connect", (incoming, socket, head) => {
      proxy.#seen(incoming);
      proxy.tunnels.push(incoming.url ?? "");
      const [host, port] = (incoming.url ?? "").split(":");
      const onward = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        onward.write(head);
        onward.pipe(socket).pipe(onward);
      });
      onward.on("error", () => socket.destroy());
      socket.on("error", () => onward.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    proxy.#url = `http://ann:pass@127.0.0.1:${(server.address() as AddressInfo).port}`;
    return proxy;
  }

  get url(): string {
    return this.#url;
  }

  #seen({ headers }: IncomingMessage): void {
    this.authorizations.add(headers["proxy-authorization"]);
  }
}

describe("a worker", () => {
  let on: WorkerRig;
  const ca = certificate("An own CA");
  let front: ApiProxy;
  const before: Record<string, string | undefined> = {};

  beforeAll(async () => {
    on = await WorkerRig.open({ TRADEWIND_OUTPUT_INLINE_LIMIT: "65536" });
    await on.rig.publish({ "large.ts": DAGS });
  }, 60_000);
  beforeEach(async () => {
    for (const name of PROXY_VARIABLES) {
      before[name] = process.env[name];
      delete process.env[name];
    }
    front = await ApiProxy.open(certificate("The API", ca));
    front.target = on.apiUrl;
  });
  afterEach(() => {
    for (const [name, value] of Object.entries(before))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });

  async function runsTasks(url: string): Promise<void> {
    const worker = await on.worker({ url, ca: ca.cert });
    const run = await on.rig.trigger("large");
    expect(await on.rig.ended(run)).toBe("success");
    expect(await on.rig.output(run, "read")).toBe(3_000_000);
    expect(await on.logLines("large", (await on.rig.run(run)).run_id, "big")).toContain("made");
    await worker.stop();
  }

  it("trusts the CA that it is given, besides those of Node.js", async () => {
    await runsTasks(front.url);
    expect(front.count("POST /execution/v1/outputs")).toBe(1);
  });

  it("does not talk to an API whose certificate it cannot verify", async () => {
    const client = new ExecutionClient({ url: front.url, token: on.workerToken });
    await expect(client.get("bundles/00000000")).rejects.toMatchObject({
      code: "API_UNREACHABLE",
      message: expect.stringMatching(/certificate/),
    });
    expect(front.requests).toEqual([]);
    client.close();
  });

  it("reaches an API with TLS through the proxy of HTTPS_PROXY, and only through it", async () => {
    const proxy = await ForwardProxy.open();
    process.env.HTTPS_PROXY = proxy.url;
    process.env.HTTP_PROXY = "http://127.0.0.1:1";
    await runsTasks(front.url);
    expect(new Set(proxy.tunnels)).toEqual(new Set([new URL(front.url).host]));
    expect(proxy.tunnels).toHaveLength(front.connections);
    expect([...proxy.authorizations]).toEqual([AUTHORIZATION]);
    expect(proxy.requests).toEqual([]);
  });

  it("reaches an API without TLS through the proxy of HTTP_PROXY", async () => {
    const proxy = await ForwardProxy.open();
    process.env.HTTP_PROXY = proxy.url;
    on.proxy.requests.length = 0;
    await runsTasks(on.proxy.url);
    expect(on.proxy.requests.length).toBeGreaterThan(5);
    expect(proxy.requests).toHaveLength(on.proxy.requests.length);
    expect([...proxy.authorizations]).toEqual([AUTHORIZATION]);
  });

  it("stops its tasks and ends when its token is revoked", async () => {
    const worker = await on.worker();
    const run = await on.rig.trigger("endless");
    await on.rig.until(async () => (await on.rig.states(run)).t === "running", "the task");
    const [row] = await on.rig.db.rows<{ id: number }>(
      adhoc("SELECT id FROM api_token WHERE role = 'worker'"),
    );
    await on.rig.db.transaction((tx) => deleteToken(tx, row!.id));
    await worker.finished;
    await worker.stop();
    const { pid } = (await on.rig.tasks(run)).t!;
    expect(isAlive(pid!)).toBe(false);
    // Its lease expires; the task is started again where another worker serves its queue.
    await createToken(on.rig.db, { name: "w", token: on.workerToken, role: "worker", expiresAt: null });
  });

  it("stops its tasks and ends when the server is updated and does not serve its protocol any more", async () => {
    const worker = await on.worker();
    const run = await on.rig.trigger("endless");
    await on.rig.until(async () => (await on.rig.states(run)).t === "running", "the task");
    await on.rig.db.rows(
      adhoc(`UPDATE job SET facts = jsonb_set(facts::jsonb, '{protocol}', '0')::json
             WHERE kind = 'worker' AND state = 'running'`),
    );
    await worker.finished;
    await worker.stop();
    const { pid } = (await on.rig.tasks(run)).t!;
    expect(isAlive(pid!)).toBe(false);
  });

  it.each(["127.0.0.1", "*", "10.0.0.1,127.0.0.1"])(
    "uses no proxy for addresses in NO_PROXY: %s",
    async (hosts) => {
      process.env.HTTPS_PROXY = "http://127.0.0.1:1";
      process.env.NO_PROXY = hosts;
      const client = new ExecutionClient({ url: front.url, token: on.workerToken, ca: ca.cert });
      await expect(client.get("bundles/00000000")).rejects.toMatchObject({ code: "NOT_FOUND" });
      client.close();
    },
  );
});

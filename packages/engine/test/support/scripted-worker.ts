/** A worker whose calls are made by a test one by one: it claims and reports, and runs nothing. */
import { randomBytes } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import type { Assignment } from "../../src/execute/contract.ts";
import { ExecutionClient } from "../../src/execute/worker/execution-client.ts";
import { createToken } from "../../src/store/access/tokens.ts";
import type { Database } from "../../src/store/database/database.ts";

export interface Claim {
  readonly token: string;
  readonly assignment: Assignment;
  readonly is_void: boolean;
}

export interface Orders {
  readonly cancels: readonly { readonly id: string; readonly cancel: Json }[];
  readonly superseded: readonly string[];
  readonly unknown: readonly string[];
  readonly is_draining: boolean;
}

export class ScriptedWorker {
  client: ExecutionClient;
  readonly name: string;
  readonly #token: string;
  id = 0;

  static async register(
    db: Database,
    { url, queues = ["default"] }: { readonly url: string; readonly queues?: readonly string[] },
  ): Promise<ScriptedWorker> {
    const token = `tw_${randomBytes(24).toString("base64url")}`;
    const name = `scripted-${randomBytes(3).toString("hex")}`;
    await createToken(db, { name, token, role: "worker", expiresAt: null });
    const worker = new ScriptedWorker(url, token, name);
    await worker.register(queues);
    return worker;
  }

  private constructor(url: string, token: string, name: string) {
    this.client = new ExecutionClient({ url, token });
    this.#token = token;
    this.name = name;
  }

  /** Calls another API server from now on. */
  reach({ url }: { readonly url: string }): void {
    this.client.close();
    this.client = new ExecutionClient({ url, token: this.#token });
  }

  async register(queues: readonly string[] = ["default"]): Promise<void> {
    const { name } = this;
    const facts = { hostname: "far-away", pid: 1, version: "test", protocol: 1, slots: 4, labels: {} };
    this.id = (await this.client.post<{ worker: number }>("workers", { name, queues, ...facts })).worker;
  }

  async claim(...ids: readonly string[]): Promise<readonly Claim[]> {
    return (await this.client.post<{ claimed: Claim[] }>("claims", { worker: this.id, ids })).claimed;
  }

  /** Claims one assignment, which must succeed. */
  async take(id: string): Promise<Claim> {
    const [claim] = await this.claim(id);
    if (claim === undefined) throw new Error(`${this.name} did not get ${id}`);
    return claim;
  }

  started(claim: Claim): Promise<readonly string[]> {
    return this.report(claim, "started", { pid: 4711 });
  }

  /** Reports a success with this output. */
  succeeded(claim: Claim, output: Json): Promise<readonly string[]> {
    return this.ended(claim, { kind: "success", skip: [], output });
  }

  ended(claim: Claim, outcome: Json): Promise<readonly string[]> {
    return this.report(claim, "ended", { outcome });
  }

  /** Returns the assignments whose report does not count. */
  async report({ token }: Claim, type: string, content: Json): Promise<readonly string[]> {
    const reports = [{ token, type, content, ago_ms: 0 }];
    const body = { worker: this.id, reports };
    return (await this.client.post<{ superseded: string[] }>("reports", body)).superseded;
  }

  /** A heartbeat that names these assignments: the API answers when there is something to say. */
  beat(assignments: readonly string[] = [], stopping: readonly string[] = []): Promise<Orders> {
    const body = { assignments, stopping, free_slots: 4, is_draining: false };
    return this.client.post(`workers/${this.id}/heartbeat`, body);
  }
}

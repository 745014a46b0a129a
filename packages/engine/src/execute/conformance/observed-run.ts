/** A run of an example DAG, as the REST API and the witness show it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ExecutorSubject } from "./subject.ts";
import { soon, type Witness } from "./witness.ts";

export interface ShownTask {
  readonly state: string | null;
  readonly try_number: number;
  readonly hostname: string | null;
  readonly pid: number | null;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly queued_when: string | null;
  readonly reason: string | null;
}

export class ObservedRun {
  readonly id: string;
  readonly #path: string;
  readonly #subject: ExecutorSubject;
  readonly #dagId: string;

  static async start(
    subject: ExecutorSubject,
    witness: Witness,
    dagId: string,
    conf: object = {},
  ): Promise<ObservedRun> {
    const run = new ObservedRun(subject, dagId, `${dagId}-${randomBytes(4).toString("hex")}`);
    await run.#call("POST", `/dags/${dagId}/dagRuns`, {
      dag_run_id: run.id,
      logical_date: null,
      conf: { witness: witness.url, ...conf },
    });
    return run;
  }

  private constructor(subject: ExecutorSubject, dagId: string, id: string) {
    this.#subject = subject;
    this.#dagId = dagId;
    this.id = id;
    this.#path = `/dags/${dagId}/dagRuns/${id}`;
  }

  async begins(): Promise<void> {
    await soon(
      async () => (await this.#state()) === "running",
      () => `the start of ${this.id}`,
    );
  }

  /** Waits for the end of the run. */
  async ends(state: "success" | "failed"): Promise<void> {
    await soon(
      async () => ["success", "failed"].includes(await this.#state()),
      () => `the end of ${this.id}`,
    );
    assert.equal(await this.#state(), state, `the state of ${this.id}`);
  }

  task(id: string): Promise<ShownTask> {
    return this.#call<ShownTask>("GET", `${this.#path}/taskInstances/${id}`);
  }

  async taskIs(id: string, state: string): Promise<ShownTask> {
    await soon(
      async () => (await this.task(id)).state === state,
      () => `${id} of ${this.id} is ${state}`,
    );
    return this.task(id);
  }

  async output(task: string): Promise<unknown> {
    const path = `${this.#path}/taskInstances/${task}/xcomEntries/return_value`;
    return (await this.#call<{ value: unknown }>("GET", path)).value;
  }

  /** The messages of the log of a try, so far. */
  async log(task: string, tryNumber = 1): Promise<string[]> {
    const path = `${this.#path}/taskInstances/${task}/logs/${tryNumber}`;
    const text = await this.#fetch("GET", path, undefined, "application/x-ndjson").then((found) =>
      found.text(),
    );
    const lines = text.split("\n").filter(Boolean);
    return lines.map((line) => (JSON.parse(line) as { event: string }).event);
  }

  async cancel(): Promise<void> {
    await this.#call("PATCH", this.#path, { state: "failed" });
  }

  async clear(task: string): Promise<void> {
    await this.#call("POST", `/dags/${this.#dagId}/clearTaskInstances`, {
      dag_run_id: this.id,
      task_ids: [task],
      only_failed: false,
      dry_run: false,
    });
  }

  async send(key: string, value: unknown): Promise<void> {
    await this.#call("POST", "/signals", { signals: [{ key, value }] });
  }

  async #state(): Promise<string> {
    return (await this.#call<{ state: string }>("GET", this.#path)).state;
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.#fetch(method, path, body);
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  #fetch(method: string, path: string, body?: unknown, accept = "application/json"): Promise<Response> {
    return fetch(`${this.#subject.url}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#subject.token}`,
        accept,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }
}

/** Notice hosts next to a scheduler rig, with real receivers. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { NoticeHost, type NoticeHostOptions } from "../../src/notify/notice-host.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { adhoc, type Database } from "../../src/store/database/database.ts";
import { createConnection, openConnection } from "../../src/store/settings/connections.ts";
import { SchedulerRig } from "./scheduler-rig.ts";

export interface DeadlineRow {
  readonly id: number;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly ordinal: number;
  readonly counts_from: string;
  readonly due_at: Date;
  readonly state: string;
  readonly clear_number: number;
}

export interface DeliveryRow {
  readonly id: number;
  readonly event: string;
  readonly deadline_id: number | null;
  readonly task_id: string | null;
  readonly group_id: string | null;
  readonly map_index: number;
  readonly place: number;
  readonly state: string;
  readonly attempts: number;
  readonly error: string | null;
  readonly next_try_at: Date;
}

export class NoticeFixture {
  readonly rig: SchedulerRig;

  constructor(rig: SchedulerRig) {
    this.rig = rig;
  }

  static async open() {
    const rig = await SchedulerRig.open();
    return { rig, desk: new NoticeFixture(rig), receiver: await new PostReceiver().open() };
  }

  /** Runs until the end of the test. */
  async host(
    options: Pick<NoticeHostOptions, "publicUrl" | "times"> & { readonly database?: Database } = {},
  ): Promise<NoticeHost> {
    const { database = this.rig.db, publicUrl, times } = options;
    const host = new NoticeHost({
      database,
      logger: silentLogger,
      wakeUps: this.rig.wakeUps,
      onHanded: () => this.rig.requestCallbacks(),
      connection: (id) => openConnection(database, this.rig.secretBox, id),
      publicUrl,
      ...(times && { times }),
    });
    await host.start();
    onTestFinished(() => host.stop());
    return host;
  }

  deadlines(runId: number): Promise<DeadlineRow[]> {
    const sql = "SELECT * FROM deadline WHERE dag_run_id = $1 ORDER BY task_id, ordinal";
    return this.rig.db.rows<DeadlineRow>(adhoc(sql), [runId]);
  }

  deliveries(runId: number): Promise<DeliveryRow[]> {
    const sql = "SELECT * FROM delivery WHERE dag_run_id = $1 ORDER BY id";
    return this.rig.db.rows<DeliveryRow>(adhoc(sql), [runId]);
  }

  /** By "task#ordinal"; "#0" for the run. */
  async states(runId: number): Promise<Record<string, string>> {
    const rows = await this.deadlines(runId);
    return Object.fromEntries(rows.map((row) => [`${row.task_id}#${row.ordinal}`, row.state]));
  }

  async settled(runId: number, withinMs = 60_000): Promise<DeliveryRow[]> {
    await this.rig.until(
      async () => {
        const rows = await this.deliveries(runId);
        return rows.length > 0 && rows.every(({ state }) => state === "done" || state === "dead");
      },
      `deliveries of run ${runId}`,
      withinMs,
    );
    return this.deliveries(runId);
  }

  /** Makes all waiting deliveries due now. */
  async hurry(): Promise<void> {
    await this.rig.db.rows(
      adhoc("UPDATE delivery SET next_try_at = now() WHERE state = 'pending' AND error IS NOT NULL"),
    );
  }

  async connection(id: string, values: Partial<Parameters<typeof createConnection>[2]>): Promise<void> {
    await createConnection(this.rig.db, this.rig.secretBox, {
      connId: id,
      connType: "http",
      description: null,
      host: null,
      port: null,
      login: null,
      schema: null,
      password: null,
      extra: null,
      ...values,
    });
  }
}

export interface ReceivedPost {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The status of the response; null: none was sent. */
  readonly status: number | null;
}

/** An HTTP server that records the posted requests and responds as configured. */
export class PostReceiver {
  readonly received: ReceivedPost[] = [];
  status = 204;
  /** Accepts requests and never responds. */
  isMute = false;
  #server: Server | null = null;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/late`;
  }

  get port(): number {
    return this.#port;
  }

  /** On the same port as before, if there was one. */
  async open(): Promise<this> {
    const server = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8");
      request.on("data", (chunk: string) => {
        text += chunk;
      });
      request.on("end", () => {
        const status = this.isMute ? null : this.status;
        this.received.push({ headers: request.headers, text, status });
        if (!this.isMute) response.writeHead(this.status).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise<void>((resolve) => this.#server?.close(() => resolve()) ?? resolve());
  }
}

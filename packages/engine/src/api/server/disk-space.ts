/**
 * Whether the database has recently rejected a write of this process for lack of disk space. Reads and small changes may still
 * succeed then, so the health check needs this flag.
 */
import type { FastifyInstance } from "fastify";
import { DATABASE_FULL, type Problem } from "./problem.ts";

declare module "fastify" {
  interface FastifyInstance {
    readonly diskSpace: DiskSpace;
  }
}

const RECENT_MS = 60_000;

export class DiskSpace {
  #refusedAt = Number.NEGATIVE_INFINITY;

  static observe(app: FastifyInstance): DiskSpace {
    const space = new DiskSpace();
    app.decorate("diskSpace", space);
    return space;
  }

  readonly onProblem = ({ code }: Problem): void => {
    if (code === DATABASE_FULL) this.#refusedAt = performance.now();
  };

  get isShort(): boolean {
    return performance.now() - this.#refusedAt < RECENT_MS;
  }
}

/**
 * Access to the task execution API. A worker authenticates with a token of the role worker (or admin), a pod with its launch
 * token. Each call about an assignment also carries the attempt token that the claim returned.
 */
import type { FastifyRequest } from "fastify";
import type { Assignment } from "../../execute/contract.ts";
import { readAttemptToken, readLaunchToken } from "../../secret/attempt-token.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import type { Database } from "../../store/database/database.ts";
import { readAssignments } from "../../store/execute/assignments.ts";
import { isLaunched, isWorkerOf } from "../../store/execute/workers.ts";
import { bearer, type Principal, principalOf } from "../server/auth.ts";
import type { ApiOptions } from "../server/context.ts";
import { Problem } from "../server/problem.ts";

/** Never the id of a stored token. */
const NO_TOKEN = 0;

/** The config of every route of the execution API: also accepts the launch token of a pod, until its assignment has ended. */
export function executionRoute({ database, secretBox }: Pick<ApiOptions, "database" | "secretBox">) {
  return {
    execution: true,
    otherwise: async (request: FastifyRequest): Promise<Principal | null> => {
      const token = bearer(request.headers.authorization);
      const assignment = token === null ? null : readLaunchToken(secretBox, token);
      if (token === null || assignment === null) return null;
      // The pod of a task that was cancelled before it started has nothing to do: that is no error.
      if (!(await isLaunched(database, assignment)))
        throw new Problem(
          401,
          "ASSIGNMENT_ENDED",
          `Assignment ${assignment} has ended or was cancelled: there is nothing to run`,
        );
      return { tokenId: NO_TOKEN, name: `assignment ${assignment}`, role: "worker", token, assignment };
    },
  } as const;
}

/** How workers prove themselves. Who registered a worker never changes, so a proof is remembered. */
export class ExecutionAccess {
  readonly #database: Database;
  readonly #secretBox: SecretBox;
  readonly #proven = new Map<string, true>();

  constructor({ database, secretBox }: Pick<ApiOptions, "database" | "secretBox">) {
    this.#database = database;
    this.#secretBox = secretBox;
  }

  /** The token under which the caller registers; null: a pod. */
  tokenOf(request: FastifyRequest): number | null {
    const { assignment, tokenId } = principalOf(request);
    return assignment === undefined ? tokenId : null;
  }

  /** @throws Problem if the caller has not registered this worker. */
  async requireWorker(request: FastifyRequest, worker: number): Promise<void> {
    const { assignment = "" } = principalOf(request);
    const tokenId = this.tokenOf(request);
    const proof = `${worker} ${tokenId} ${assignment}`;
    if (this.#proven.has(proof)) return;
    if (!(await isWorkerOf(this.#database, worker, { tokenId, assignment: assignment || null })))
      throw new Problem(403, "WORKER_FOREIGN", `Worker ${worker} was registered with another token`);
    this.#proven.set(proof, true);
    const [oldest] = this.#proven.keys();
    if (this.#proven.size > MOST_PROVEN && oldest !== undefined) this.#proven.delete(oldest);
  }

  /** The assignments of these attempt tokens. @throws Problem if one was not issued to this worker. */
  assignmentsOf(tokens: readonly string[], worker: number): string[] {
    return tokens.map((token) => {
      const assignment = readAttemptToken(this.#secretBox, token, worker);
      if (assignment === null)
        throw new Problem(
          403,
          "ATTEMPT_TOKEN_INVALID",
          `An attempt token was not issued to worker ${worker}`,
        );
      return assignment;
    });
  }

  /** The assignment of a single call. @throws Problem if it is not, or no longer, the caller's. */
  async requireCurrent(request: FastifyRequest, worker: number, token: string): Promise<Assignment> {
    await this.requireWorker(request, worker);
    const [id = ""] = this.assignmentsOf([token], worker);
    const found = (await readAssignments(this.#database, worker, [id])).get(id);
    if (found === undefined) throw new Problem(410, SUPERSEDED.code, SUPERSEDED.error);
    return found as unknown as Assignment;
  }
}

/** The answer to a call for an attempt that does not count any more. */
export const SUPERSEDED = {
  error: "This attempt is no longer the current one.",
  code: "TASK_ATTEMPT_SUPERSEDED",
};

const MOST_PROVEN = 10_000;

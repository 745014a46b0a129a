/** `/execution/v1/logs`: the logs of assignments, in chunks. Secrets are masked by the worker. */
import { z } from "zod";
import { LOG_STORE_UNAVAILABLE } from "../../log/log-store.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import { readLogKeys } from "../../store/execute/assignments.ts";
import type { Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { ExecutionAccess, executionRoute, SUPERSEDED } from "./execution-access.ts";

const chunk = z.strictObject({
  token: z.string(),
  /** Byte offset; null: only the end of the log is wanted, where a new writer begins. */
  offset: int(0).nullable(),
  /** Whole lines. */
  text: z.string(),
});

const answer = z.object({
  /** The length of the log. */
  size: z.number().optional(),
  error: z.string().optional(),
  code: z.string().optional(),
});

type Answer = z.output<typeof answer>;

export const executionLogs: Resource = (app, options) => {
  const { database, logger, logs } = options;
  const access = new ExecutionAccess(options);

  const store = async (key: string, { offset, text }: z.output<typeof chunk>): Promise<Answer> => {
    try {
      if (offset === null) return { size: await logs.begin(key) };
      return { size: await logs.append(key, offset, Buffer.from(text)) };
    } catch (error) {
      if (error instanceof EngineError) return { error: error.message, code: error.code };
      logger.error("a task log cannot be written", { log: key, error: messageOf(error) });
      return { error: "The log store does not accept the log.", code: LOG_STORE_UNAVAILABLE };
    }
  };

  app.post(
    "/execution/v1/logs",
    {
      config: executionRoute(options),
      bodyLimit: 64 * 1024 * 1024,
      schema: {
        body: z.strictObject({ worker: int(1), logs: z.array(chunk).max(1_000) }),
        response: { 200: z.object({ answers: z.array(answer) }) },
        tags: ["Task execution"],
      },
    },
    async (request) => {
      const { logs: chunks, worker } = request.body;
      await access.requireWorker(request, worker);
      const ids = access.assignmentsOf(
        chunks.map(({ token }) => token),
        worker,
      );
      const keys = await readLogKeys(database, worker, [...new Set(ids)]);
      const ends = new Map<string, Promise<Answer>>();
      const answers = chunks.map((each, at) => {
        const key = keys.get(ids[at] ?? "");
        if (key === undefined) return SUPERSEDED;
        // Chunks of one log are stored one after the other.
        const before = ends.get(key) ?? Promise.resolve();
        const end = before.then(() => store(key, each));
        ends.set(key, end);
        return end;
      });
      return { answers: await Promise.all(answers) };
    },
  );
};

/** `/execution/v1/requests`: requests of user code, e.g. for a connection or a variable, passed on by its worker. */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { readQuestion } from "../../execute/attempt/protocol.ts";
import type { AnswerRequest, Assignment } from "../../execute/contract.ts";
import { apart, type LargePlace } from "../../model/index.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import { readAssignments } from "../../store/execute/assignments.ts";
import type { Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { invalid } from "../server/problem.ts";
import { ExecutionAccess, executionRoute, SUPERSEDED } from "./execution-access.ts";
import { type GrantedPlace, granted } from "./output-grants.ts";

const ask = z.strictObject({
  token: z.string(),
  request: z.any(),
  /** Time since the try started. */
  ago_ms: z.number().min(0),
});

const answer = z.object({
  value: z.any().optional(),
  /** The places of large values in the answer. */
  large: z.any().optional(),
  error: z.string().optional(),
  code: z.string().optional(),
});

export function requests(answerRequest: AnswerRequest): Resource {
  return (app, options) => {
    const access = new ExecutionAccess(options);
    app.post(
      "/execution/v1/requests",
      {
        config: executionRoute(options),
        bodyLimit: 64 * 1024 * 1024,
        schema: {
          body: z.strictObject({ worker: int(1), requests: z.array(ask).max(1_000) }),
          response: { 200: z.object({ answers: z.array(answer) }) },
          tags: ["Task execution"],
        },
      },
      async (request) => {
        const { requests: given, worker } = request.body;
        await access.requireWorker(request, worker);
        const ids = access.assignmentsOf(
          given.map(({ token }) => token),
          worker,
        );
        const held = await readAssignments(options.database, worker, [...new Set(ids)]);
        const answers = given.map(async ({ ago_ms: agoMs, request: raw }, at) => {
          const question = readQuestion(raw);
          if (question === null) throw invalid(["body", "requests", at, "request"], "is not a known request");
          const of = held.get(ids[at] ?? "") as Assignment | undefined;
          if (of === undefined) return SUPERSEDED;
          try {
            return shown(await answerRequest(of, question, agoMs), (large) =>
              granted(options.secretBox, of.id, large),
            );
          } catch (error) {
            if (error instanceof EngineError) return { error: error.message, code: error.code };
            options.logger.error("request of a task failed", { attempt: of.id, error: messageOf(error) });
            return { error: "" };
          }
        });
        return { answers: await Promise.all(answers) };
      },
    );
  };
}

function shown(
  value: Awaited<ReturnType<AnswerRequest>>,
  grant: (large: readonly LargePlace[]) => GrantedPlace[],
): { value?: Json; large?: readonly GrantedPlace[] } {
  if (value === undefined) return {};
  const large: LargePlace[] = [];
  const small = apart(value, [], large);
  return { value: small, ...(large.length > 0 && { large: grant(large) }) };
}

/**
 * Every answer that is not a success: `application/problem+json` (RFC 9457) whose `detail` is what Airflow's clients
 * read: a sentence, or for 422 a list of `{ loc, msg, type }`. Errors nobody foresaw become a 500 that tells a request
 * id and nothing else; the log has the rest. No text of the database ever reaches a caller.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { type $ZodIssue, type $ZodType, safeParse } from "zod/v4/core";
import { SECRET_UNREADABLE } from "../../secret/secret-box.ts";
import { EngineError } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { oneOf } from "../../service/value-list.ts";
import { DISK_FULL } from "../../store/database/connection-error.ts";
import { CommitUnknownError, isTransient, sqlState } from "../../store/database/database.ts";

export interface FieldError {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** For the description of the API; `sendProblem` writes it. */
export const problemDocument = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    detail: z.union([
      z.string(),
      z.array(
        z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string(), type: z.string() }),
      ),
    ]),
    code: z.string(),
    request_id: z.string(),
  })
  .meta({ id: "Problem" });

export class Problem extends Error {
  readonly statusCode: number;
  readonly code: string;
  readonly detail: string | readonly FieldError[];
  /** When the same request may do better. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    statusCode: number,
    code: string,
    detail: string | readonly FieldError[],
    retryAfterSeconds = statusCode === 503 ? 1 : undefined,
  ) {
    super(typeof detail === "string" ? detail : detail.map((each) => each.msg).join("; "));
    this.statusCode = statusCode;
    this.code = code;
    this.detail = detail;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function notFound(detail: string): Problem {
  return new Problem(404, "NOT_FOUND", detail);
}

export function conflict(detail: string): Problem {
  return new Problem(409, "CONFLICT", detail);
}

/** A value that is well formed but cannot be meant: names the field like any validation error. */
export function invalid(loc: readonly (string | number)[], msg: string, type = "value_error"): Problem {
  return new Problem(422, "VALIDATION", [{ loc, msg, type }]);
}

/** For Fastify: checks a part of the request against its schema. */
export function validatorCompiler({ schema, httpPart }: { schema: unknown; httpPart?: string }) {
  const place = LOCATIONS[httpPart ?? "body"] ?? httpPart ?? "body";
  return (data: unknown) => {
    // With the input, which tells a field that is not there from one that is wrong. It is not sent back.
    const result = safeParse(schema as $ZodType, data, { reportInput: true });
    if (result.success) return { value: result.data };
    return {
      error: new Problem(
        422,
        "VALIDATION",
        result.error.issues.flatMap((issue) => fieldErrors(place, issue)),
      ),
    };
  };
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problem.statusCode)
    .type("application/problem+json")
    .serializer((payload: unknown) => JSON.stringify(payload))
    .send({
      type: "about:blank",
      title: TITLES[problem.statusCode] ?? "Error",
      status: problem.statusCode,
      detail: problem.detail,
      code: problem.code,
      request_id: reply.request.id,
    });
}

/** @param onProblem Hears of each. */
export function errorHandler(logger: Logger, onProblem: (problem: Problem) => void) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const problem = problemOf(error);
    onProblem(problem);
    if (problem.statusCode >= 500) {
      logger.error("API request failed", {
        error: error.stack ?? error.message,
        method: request.method,
        request_id: request.id,
        route: request.routeOptions.url ?? null,
      });
    }
    if (problem.retryAfterSeconds !== undefined)
      reply.header("retry-after", String(problem.retryAfterSeconds));
    return sendProblem(reply, problem);
  };
}

const LOCATIONS: Readonly<Record<string, string>> = {
  headers: "header",
  params: "path",
  querystring: "query",
};

/** For what the HTTP server itself refuses, by status. */
const CODES: Readonly<Record<number, string>> = {
  413: "BODY_TOO_LARGE",
  415: "CONTENT_TYPE_UNSUPPORTED",
};

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

function fieldErrors(place: string, issue: $ZodIssue): FieldError[] {
  const loc = [place, ...issue.path.map((step) => (typeof step === "number" ? step : String(step)))];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      loc: [...loc, key],
      msg: `Unknown field "${key}"`,
      type: "extra_forbidden",
    }));
  }
  if (issue.input === undefined) return [{ loc, msg: "Field required", type: "missing" }];
  if (issue.code === "invalid_union") {
    const { path } = issue;
    const meant = meantBranch(issue.errors);
    if (meant) return meant.flatMap((each) => fieldErrors(place, { ...each, path: [...path, ...each.path] }));
  }
  if (issue.code === "invalid_value") {
    return [{ loc, msg: `Must be ${oneOf(issue.values)}`, type: issue.code }];
  }
  return [{ loc, msg: issue.message, type: issue.code }];
}

/** Of the forms a value may have, the one it comes closest to, with the fewest mistakes: what is wrong with that one helps, "invalid" does not. */
function meantBranch(branches: readonly $ZodIssue[][]): readonly $ZodIssue[] | undefined {
  const closeness = (issues: readonly $ZodIssue[]) =>
    Math.max(0, ...issues.map(({ code, path }) => 2 * path.length + (code === "invalid_type" ? 0 : 1)));
  const closest = branches.toSorted((a, b) => closeness(b) - closeness(a) || a.length - b.length)[0];
  return closest !== undefined && closeness(closest) > 0 ? closest : undefined;
}

function problemOf(error: FastifyError): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof CommitUnknownError) {
    return new Problem(
      503,
      "OUTCOME_UNKNOWN",
      "The database went away while the change was being stored. Look whether it is there before trying again, or retry with the same Idempotency-Key.",
    );
  }
  const state = sqlState(error);
  if (state !== null && REFUSED.has(state)) {
    return new Problem(
      422,
      "VALIDATION",
      "A value in this request cannot be stored: it is out of range or not valid text.",
    );
  }
  if (state !== null && CONTENDED.has(state)) {
    return new Problem(503, "BUSY", "Others changed the same rows at this moment. Try again.");
  }
  if (state === DISK_FULL) {
    return new Problem(
      503,
      DATABASE_FULL,
      "The database has no disk space left. Nothing was changed. Free space on its server, then try again.",
      DISK_FULL_RETRY_SECONDS,
    );
  }
  if (isTransient(error) || state === "57014") {
    return new Problem(503, "DATABASE_AWAY", "The database does not answer at this moment. Try again.");
  }
  // What is stored and the key of this server do not fit: nothing a second try would change.
  if (error instanceof EngineError && error.code === SECRET_UNREADABLE)
    return new Problem(409, error.code, error.message);
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new Problem(error.statusCode, CODES[error.statusCode] ?? "BAD_REQUEST", error.message);
  }
  return new Problem(
    500,
    "INTERNAL",
    "Internal error. The server's log has the details under this request_id.",
  );
}

export const DATABASE_FULL = "DATABASE_FULL";
const DISK_FULL_RETRY_SECONDS = 30;

/** Values PostgreSQL itself refuses: number out of range, bad text, bad date, bad escape, bad json. */
const REFUSED = new Set(["22003", "22021", "22007", "22008", "22025", "22P02", "22P05", "54000"]);

/** Serialisation failure, deadlock, lock timeout, and our own: fenced, no room, a state moved on. */
const CONTENDED = new Set(["40001", "40P01", "55P03", "TW001", "TW002", "TW003"]);

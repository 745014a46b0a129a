/**
 * Error responses: `application/problem+json` (RFC 9457) whose `detail` has the form that Airflow's clients read: a sentence,
 * or for 422 a list of `{ loc, msg, type }`. Unexpected errors become a 500 with only a request id; the details are in the log.
 * Messages of the database never reach a client.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { type $ZodIssue, type $ZodType, safeParse } from "zod/v4/core";
import { LOG_STORE_UNAVAILABLE } from "../../log/log-store.ts";
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
  /** The message for a reader who sees the field; default: `msg`. */
  readonly problem?: string;
}

/** Used in the API description; `sendProblem` writes it. */
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
    /** For forms: each invalid field of the body, with its JSON pointer. */
    errors: z.array(z.object({ pointer: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: "Problem" });

export class Problem extends Error {
  readonly statusCode: number;
  readonly code: string;
  readonly detail: string | readonly FieldError[];
  /** When to repeat the request. */
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

/** A well-formed but invalid value: names the field like a schema error. */
export function invalid(loc: readonly (string | number)[], msg: string, type = "value_error"): Problem {
  return new Problem(422, "VALIDATION", [{ loc, msg, type }]);
}

/** Validates a part of the request against its schema, for Fastify. */
export function validatorCompiler({ schema, httpPart }: { schema: unknown; httpPart?: string }) {
  const place = LOCATIONS[httpPart ?? "body"] ?? httpPart ?? "body";
  return (data: unknown) => {
    // The input distinguishes a missing field from a wrong one. It is not sent back.
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
      ...(typeof problem.detail === "string" ? { detail: problem.detail } : fieldsOf(problem.detail)),
      code: problem.code,
      request_id: reply.request.id,
    });
}

function fieldsOf(fields: readonly FieldError[]) {
  const ofBody = fields.filter(({ loc }) => loc[0] === "body");
  return {
    detail: fields.map(({ loc, msg, type }) => ({ loc, msg, type })),
    errors: ofBody.map(({ loc, msg, problem = msg }) => ({
      pointer: pointerTo(loc.slice(1)),
      message: problem,
    })),
  };
}

/** RFC 6901; empty for the whole body. */
function pointerTo(path: FieldError["loc"]): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** @param onProblem Called for each problem. */
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

/** Codes of errors from the HTTP server itself, by status. */
const CODES: Readonly<Record<number, string>> = {
  413: "BODY_TOO_LARGE",
  415: "CONTENT_TYPE_UNSUPPORTED",
};

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  410: "Gone",
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

/** The branch of a union with the fewest issues: its message is more useful than "invalid". */
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
      "The connection to the database broke during the commit. Check whether the change was stored before repeating it, or retry with the same Idempotency-Key.",
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
    return new Problem(503, "BUSY", "Conflict with concurrent changes to the same rows. Try again.");
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
    return new Problem(503, "DATABASE_AWAY", "The database is not responding. Try again.");
  }
  if (error instanceof EngineError && error.code === LOG_STORE_UNAVAILABLE)
    return new Problem(503, error.code, error.message);
  // The stored secret does not match the key of this server: a retry would not help.
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

/** Values rejected by PostgreSQL: number out of range, invalid text, date, escape or JSON. */
const REFUSED = new Set(["22003", "22021", "22007", "22008", "22025", "22P02", "22P05", "54000"]);

/** Serialization failure, deadlock, lock timeout, and our own: fenced, no free slot, state changed. */
const CONTENDED = new Set(["40001", "40P01", "55P03", "TW001", "TW002", "TW003"]);

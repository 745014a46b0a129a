import { CliError, type FieldProblem } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Target } from "./target.ts";
import { processAlive } from "./target.ts";

/** The object of a request, from its path or the DAG in its body. */
export interface Place {
  readonly collection: string;
  readonly dagId: string | null;
  readonly runId: string | null;
  readonly taskId: string | null;
  /** The request names a version of the DAG. */
  readonly isVersion: boolean;
}

/** An error response: what failed, which field, what to do. */
export class HttpError extends CliError {
  readonly status: number;
  readonly place: Place;

  constructor(status: number, what: string, body: unknown, place = placeOf("")) {
    const { message, fields } = explain(body);
    const code = codeOf(body);
    super(code ?? `HTTP_${status}`, `${what}: ${message ?? describeStatus(status)}`, {
      exit: exitOf(status),
      remedy: remedyOf(status, code),
      fields,
    });
    this.name = "HttpError";
    this.status = status;
    this.place = place;
  }
}

export function placeOf(path: string, body?: unknown): Place {
  const [, collection = "", ...parts] = path.replace(/\?.*/, "").split("/").map(decodeURIComponent);
  const named = (body as { dag_id?: unknown } | undefined)?.dag_id;
  const [dagId = null, runs, runId = null, tasks, taskId = null] = collection === "dags" ? parts : [];
  const isRun = runs === "dagRuns";
  const ofTask = runs === "tasks" ? runId : null;
  return {
    collection,
    dagId: dagId ?? (typeof named === "string" ? named : null),
    runId: isRun ? runId : null,
    taskId: isRun && tasks === "taskInstances" ? taskId : ofTask,
    isVersion: runs === "dagVersions",
  };
}

/** No response at all. `what` begins the sentence, e.g. `cannot list the DAGs`. */
export function networkError(what: string, target: Target, cause: unknown): CliError {
  const reason = reasonOf(cause);
  const stopped = target.pid !== undefined && !processAlive(target.pid);
  return new CliError("TW_CLI_UNREACHABLE", `${what}: ${target.url} does not answer (${reason}).`, {
    exit: EXIT.server,
    remedy: stopped
      ? `the standalone that used this address (process ${target.pid}) has stopped: start it again with \`tradewind standalone\``
      : "check that the server runs there (`tradewind doctor`), or give another address with --url",
    cause,
  });
}

function exitOf(status: number): ExitCode {
  if (status === 401 || status === 403) return EXIT.auth;
  if (status === 404) return EXIT.notFound;
  if (status === 409 || status === 412) return EXIT.conflict;
  if (status === 408 || status === 429 || status >= 500) return EXIT.server;
  if (status === 400 || status === 422) return EXIT.usage;
  return EXIT.failed;
}

function remedyOf(status: number, code: string | undefined): string | undefined {
  // The message about a large output already names the cause and the remedy.
  if (code?.startsWith("OUTPUT_")) return undefined;
  if (status === 401)
    return "give the server's token with --token, TRADEWIND_TOKEN, or --home (its folder holds the file `token`)";
  if (status === 403) return "use a token with permission for this operation";
  if (status === 429) return "the server is busy: try again in a moment";
  if (status >= 500) return "see the server's log for the cause; `tradewind doctor` checks the installation";
  return undefined;
}

function describeStatus(status: number): string {
  if (status === 401) return "the server rejected the token.";
  if (status === 403) return "the token has no permission for this operation.";
  if (status === 404) return "it does not exist.";
  return `the server answered ${status}.`;
}

/** Airflow's forms of `detail` (a text, an object, a list of field errors) and RFC 9457's `errors`. */
function explain(body: unknown): { message: string | undefined; fields: FieldProblem[] } {
  if (body === null || typeof body !== "object") {
    return { message: typeof body === "string" && body !== "" ? firstLine(body) : undefined, fields: [] };
  }
  const { detail, errors, title, message } = body as Record<string, unknown>;
  const ofDetail = fieldProblems(detail);
  // Tradewind sends the fields of a body in both forms.
  const fields = ofDetail.length > 0 ? ofDetail : fieldProblems(errors);
  if (typeof detail === "string") return { message: detail, fields };
  if (fields.length > 0) return { message: "the request is not valid.", fields };
  if (detail !== null && typeof detail === "object" && !Array.isArray(detail)) {
    const inner = detail as Record<string, unknown>;
    const text = inner.message ?? inner.reason ?? inner.statement;
    if (typeof text === "string") return { message: text, fields };
  }
  const fallback = [message, title].find((text) => typeof text === "string");
  return { message: fallback as string | undefined, fields };
}

/** The fields of a `detail` that is a list of errors. */
export function fieldProblems(value: unknown): FieldProblem[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown) => {
    if (item === null || typeof item !== "object") return [];
    const { loc, msg, pointer, path, field, message, type } = item as Record<string, unknown>;
    const text = msg ?? message;
    if (typeof text !== "string") return [];
    const name = fieldName(loc ?? pointer ?? path ?? field);
    const what = text.startsWith(`${name}: `) ? text.slice(name.length + 2) : text;
    return [{ field: name, message: isCode(type) ? `${what} [${type}]` : what }];
  });
}

/** True for an error code of docs/errors.md, false for the name of a validation check. */
function isCode(type: unknown): type is string {
  return typeof type === "string" && /^[A-Z][A-Z0-9_]+$/.test(type);
}

function fieldName(place: unknown): string {
  const parts = Array.isArray(place) ? place.map(String) : String(place ?? "").split(/[/.]/);
  const inside = ["body", "query", "path", "header", "#", ""].includes(parts[0] ?? "")
    ? parts.slice(1)
    : parts;
  return inside.filter((part) => part !== "").join(".") || "request";
}

function codeOf(body: unknown): string | undefined {
  const code = body !== null && typeof body === "object" ? (body as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : undefined;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "no answer in time";
  const cause = error.cause as (Error & { code?: string; errors?: { code?: string }[] }) | undefined;
  const code = cause?.code ?? cause?.errors?.[0]?.code;
  if (code === "ECONNREFUSED") return "connection refused";
  if (code === "ENOTFOUND") return "unknown host";
  return code ?? cause?.message ?? error.message;
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0]!.slice(0, 300);
}

/** A call of the Kubernetes API that failed, and what that means for its caller. */

/** The `Status` object with which the API server explains an error. */
interface ApiStatus {
  readonly message?: unknown;
  readonly reason?: unknown;
  readonly details?: { readonly retryAfterSeconds?: unknown } | null;
}

export interface PodApiErrorFacts {
  /** 0: there was no answer. */
  readonly status: number;
  readonly reason?: string;
  readonly retryAfterMs?: number | undefined;
}

export class PodApiError extends Error {
  readonly status: number;
  /** The server's own word for it, e.g. "AlreadyExists"; empty if it gave none. */
  readonly reason: string;
  /** How long the server asked to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { reason = "", retryAfterMs, status }: PodApiErrorFacts) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** A pod with this name exists: an earlier call created it. */
  get isExisting(): boolean {
    return this.status === 409 && this.reason === "AlreadyExists";
  }

  get isMissing(): boolean {
    return this.status === 404;
  }

  /** The version from which a list or watch is to continue is too old. */
  get isGone(): boolean {
    return this.status === 410;
  }

  /** The namespace has no room for the pod now: like any wait for a slot, this lasts until others have ended. */
  get isQuota(): boolean {
    return this.status === 403 && /exceeded quota|status unknown for quota/i.test(this.message);
  }

  /**
   * The same call may succeed later: the server is away, overloaded, or has just changed its mind about a conflict. Expired
   * credentials count too, because they are read again. Any other answer is about the request itself.
   */
  get isTransient(): boolean {
    const { status } = this;
    if (status === 409) return !this.isExisting;
    return (
      status === 0 || status === 401 || status === 408 || status === 429 || status >= 500 || this.isQuota
    );
  }
}

/** From an answer: its status, its body (a `Status` as JSON, or any text) and its headers. */
export function errorOfAnswer(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string | undefined>> = {},
): PodApiError {
  const found = readStatus(body);
  const message = typeof found.message === "string" && found.message !== "" ? found.message : textOf(body);
  const seconds = Number(headers["retry-after"] ?? found.details?.retryAfterSeconds ?? Number.NaN);
  return new PodApiError(message || `the Kubernetes API answered with status ${status}`, {
    status,
    reason: typeof found.reason === "string" ? found.reason : "",
    retryAfterMs: seconds >= 0 ? seconds * 1_000 : undefined,
  });
}

/** From an error of the connection. */
export function errorOfConnection(error: unknown): PodApiError {
  const { cause, message } = error as Error;
  const detail = cause instanceof Error ? `: ${cause.message || (cause as NodeJS.ErrnoException).code}` : "";
  return new PodApiError(`the Kubernetes API did not answer: ${message}${detail}`, { status: 0 });
}

function readStatus(body: unknown): ApiStatus {
  try {
    const found = typeof body === "string" ? JSON.parse(body) : body;
    return typeof found === "object" && found !== null ? (found as ApiStatus) : {};
  } catch {
    return {};
  }
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body.trim().slice(0, 500) : "";
}

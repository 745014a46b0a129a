/** An error of the API, as its problem document describes it. */
import type { components } from "./schema.gen.ts";

type ProblemDocument = components["schemas"]["Problem"];

export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly document: Partial<ProblemDocument>;

  constructor(status: number, document: Partial<ProblemDocument>) {
    super(textOf(document) ?? `The server answered with ${status}`);
    this.name = "ApiProblem";
    this.status = status;
    this.code = document.code ?? "UNKNOWN";
    this.document = document;
  }
}

export async function problemOf(response: Response): Promise<ApiProblem> {
  const document = (await response.json().catch(() => ({}))) as Partial<ProblemDocument>;
  return new ApiProblem(response.status, document);
}

export function messageOf(error: unknown): string {
  if (error instanceof TypeError) return "The server cannot be reached.";
  return error instanceof Error ? error.message : String(error);
}

function textOf({ detail, title }: Partial<ProblemDocument>): string | undefined {
  if (!Array.isArray(detail)) return detail ?? title;
  return detail.map(({ loc, msg }) => `${loc.slice(1).join(".")}: ${msg}`).join("; ");
}

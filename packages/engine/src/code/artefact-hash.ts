import { createHash } from "node:crypto";
import { ARTEFACT_FORMAT } from "./bundled.ts";

/** The identity of an artefact: `code` is the concatenation of its parts. */
export function artefactHash(code: string): string {
  return createHash("sha256").update(`tradewind-artefact-${ARTEFACT_FORMAT}\n`).update(code).digest("hex");
}

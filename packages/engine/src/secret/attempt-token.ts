/**
 * Tokens of the task execution API. They are signed, not stored: whether an attempt is still current is decided by the
 * database at every call, which fences and revokes at once.
 *
 * A launch token is given to a pod and names the one assignment that the pod may claim. An attempt token is the answer to a
 * claim: it names the assignment and the worker that has claimed it. A grant comes with the reference of a large output: it
 * allows that assignment to read that object. User code receives none of them.
 */
import type { SecretBox } from "./secret-box.ts";

const LAUNCH = "tradewind launch token";
const ATTEMPT = "tradewind attempt token";
const GRANT = "tradewind read grant";
const LAUNCH_PREFIX = "twl_";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function launchToken(box: SecretBox, assignment: string): string {
  return `${LAUNCH_PREFIX}${assignment}.${box.sign(assignment, LAUNCH)}`;
}

/** The assignment that the token names; null: not a launch token of this installation. */
export function readLaunchToken(box: SecretBox, token: string): string | null {
  if (!token.startsWith(LAUNCH_PREFIX)) return null;
  const [assignment = "", signed = ""] = token.slice(LAUNCH_PREFIX.length).split(".");
  return UUID.test(assignment) && box.isSigned(assignment, LAUNCH, signed) ? assignment : null;
}

export function attemptToken(box: SecretBox, assignment: string, worker: number): string {
  const text = `${assignment}.${worker}`;
  return `${text}.${box.sign(text, ATTEMPT)}`;
}

/** The assignment of a token that this worker received; null: forged, or of another worker. */
export function readAttemptToken(box: SecretBox, token: string, worker: number): string | null {
  const [assignment = "", holder = "", signed = ""] = token.split(".");
  if (!UUID.test(assignment) || holder !== `${worker}`) return null;
  return box.isSigned(`${assignment}.${worker}`, ATTEMPT, signed) ? assignment : null;
}

/** @param object The id of the object's row. */
export function readGrant(box: SecretBox, assignment: string, object: number): string {
  return box.sign(`${assignment}.${object}`, GRANT);
}

export function isReadGrant(box: SecretBox, grant: string, assignment: string, object: number): boolean {
  return box.isSigned(`${assignment}.${object}`, GRANT, grant);
}

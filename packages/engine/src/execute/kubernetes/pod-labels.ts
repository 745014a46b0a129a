/** The labels by which the executor finds its pods, and by which users select them. */
import { createHash } from "node:crypto";
import type { LaunchedTask } from "../remote/launcher.ts";

const PREFIX = "tradewind.dev/";

const INSTALLATION = `${PREFIX}installation`;
const EXECUTOR = `${PREFIX}executor`;
const ASSIGNMENT = `${PREFIX}assignment`;
/** On pods that are kept after their end. */
export const DONE = `${PREFIX}done`;
/** On templates: the queues that they are for. */
export const QUEUES = `${PREFIX}queues`;

/** The executor of one installation: it watches the pods with both labels. */
export interface PodOwner {
  readonly installation: string;
  readonly executor: string;
}

export function podName(assignment: string): string {
  return `tradewind-${assignment}`;
}

/** The labels of one pod. They have the ids in the form that Kubernetes accepts; the annotations have them in full. */
export function labelsOf(owner: PodOwner, assignment: string, task: LaunchedTask): Record<string, string> {
  return {
    [INSTALLATION]: owner.installation,
    [EXECUTOR]: labelValue(owner.executor),
    [ASSIGNMENT]: assignment,
    ...mapValues(idsOf(task), labelValue),
  };
}

export function annotationsOf(task: LaunchedTask): Record<string, string> {
  return idsOf(task);
}

/** Selects the pods of an executor that are not kept after their end. */
export function selectorOf(owner: PodOwner): string {
  return `${INSTALLATION}=${owner.installation},${EXECUTOR}=${labelValue(owner.executor)},!${DONE}`;
}

/** null: not a pod of an assignment. */
export function assignmentOf(labels: Readonly<Record<string, string>> | undefined): string | null {
  return labels?.[ASSIGNMENT] ?? null;
}

/** At most 63 letters, digits, and `-_.` between them; a longer or changed text ends with its hash, so that it stays unique. */
export function labelValue(text: string): string {
  if (/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/.test(text)) return text;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  const start = text.replaceAll(/[^\w.-]/g, "_").replace(/^[^A-Za-z0-9]+/, "");
  return `${start.slice(0, 54)}${start === "" ? "" : "-"}${hash}`;
}

function idsOf({ dagId, kind, mapIndex, runId, taskId, tryNumber }: LaunchedTask): Record<string, string> {
  return {
    [`${PREFIX}kind`]: kind,
    [`${PREFIX}dag`]: dagId,
    [`${PREFIX}run`]: runId,
    ...(taskId !== null && { [`${PREFIX}task`]: taskId, [`${PREFIX}try`]: `${tryNumber}` }),
    ...(mapIndex !== null && mapIndex >= 0 && { [`${PREFIX}map-index`]: `${mapIndex}` }),
  };
}

function mapValues(of: Record<string, string>, change: (text: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(of).map(([key, text]) => [key, change(text)]));
}

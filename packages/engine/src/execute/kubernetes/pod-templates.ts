/**
 * Pod templates: a YAML file with one or more pods. The first one is the default. A task can name another one, and a
 * template can name the queues that it is for.
 */
import { readFile } from "node:fs/promises";
import type { V1Pod } from "@kubernetes/client-node";
import { parseAllDocuments } from "yaml";
import { EngineError, messageOf } from "../../service/errors.ts";
import { QUEUES } from "./pod-labels.ts";

/** The container that runs the task; a pod may have others beside it. */
export const TASK_CONTAINER = "task";

export interface PodTemplate {
  readonly name: string;
  readonly pod: V1Pod;
}

export interface PodTemplates {
  readonly default: PodTemplate;
  readonly byName: ReadonlyMap<string, PodTemplate>;
  readonly byQueue: ReadonlyMap<string, PodTemplate>;
}

export async function loadPodTemplates(path: string): Promise<PodTemplates> {
  const text = await readFile(path, "utf8").catch((error) => {
    throw invalid(path, `it cannot be read: ${messageOf(error)}`);
  });
  return readPodTemplates(text, path);
}

export function readPodTemplates(text: string, path: string): PodTemplates {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) throw invalid(path, "it is empty");
  const byName = new Map<string, PodTemplate>();
  const byQueue = new Map<string, PodTemplate>();
  for (const [at, document] of documents.entries()) {
    const [problem] = document.errors;
    if (problem !== undefined) throw invalid(path, problem.message);
    const content: unknown = document.toJS();
    // After the last separator.
    if (content === null) continue;
    const template = readTemplate(content, path, at);
    if (byName.has(template.name)) throw invalid(path, `two templates are called "${template.name}"`);
    byName.set(template.name, template);
    for (const queue of queuesOf(template.pod)) {
      const other = byQueue.get(queue);
      if (other !== undefined)
        throw invalid(
          path,
          `the templates "${other.name}" and "${template.name}" are both for queue "${queue}"`,
        );
      byQueue.set(queue, template);
    }
  }
  const [first] = byName.values();
  if (first === undefined) throw invalid(path, "it is empty");
  return { default: first, byName, byQueue };
}

function readTemplate(content: unknown, path: string, at: number): PodTemplate {
  const pod = content as V1Pod;
  const name = pod.metadata?.name ?? (at === 0 ? "default" : undefined);
  const which = at === 0 ? "its pod" : `pod ${at + 1}`;
  if (pod.kind !== "Pod" || pod.apiVersion !== "v1")
    throw invalid(path, `${which} is not of kind Pod, version v1`);
  if (typeof name !== "string" || name === "") throw invalid(path, `${which} needs a name: metadata.name`);
  const task = pod.spec?.containers?.find((container) => container?.name === TASK_CONTAINER);
  if (task === undefined)
    throw invalid(path, `${which} needs a container with the name "${TASK_CONTAINER}", which runs the task`);
  return { name, pod };
}

function queuesOf(pod: V1Pod): string[] {
  const names = pod.metadata?.annotations?.[QUEUES]?.split(",").map((name) => name.trim()) ?? [];
  return names.filter((name) => name !== "");
}

function invalid(path: string, why: string): EngineError {
  return new EngineError("CONFIG_INVALID", `The pod template ${path} cannot be used: ${why}.`, {
    details: { setting: "TRADEWIND_POD_TEMPLATE" },
  });
}

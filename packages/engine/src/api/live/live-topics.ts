/** Names of topics, and who may read them. */
import { z } from "zod";
import type { Principal } from "../server/auth.ts";
import { Problem } from "../server/problem.ts";

const PLAIN_TOPICS = [
  "runs",
  "dags",
  "signals",
  "waiting",
  "approvals",
  "errors",
  "backfills",
  "assets",
  "jobs",
  "settings",
  "audit",
  "home",
] as const;

const NAME = "[^\\x00-\\x20\\x7f,/]{1,250}";
const TOPIC = new RegExp(`^(?:${PLAIN_TOPICS.join("|")}|dag:${NAME}|run:${NAME}/${NAME})$`);
const MOST_TOPICS = 1_000;

export const topicList = z.array(z.string().max(600)).max(MOST_TOPICS);

export function dagTopic(dagId: string): `dag:${string}` {
  return `dag:${dagId}`;
}

/**
 * Called with all topics of a stream, when it begins and when they change.
 * @throws Problem for an unknown topic, and for topics that the caller may not read
 */
export function requireTopics({ name, role }: Principal, topics: readonly string[]): void {
  const unknown = topics.find((topic) => !TOPIC.test(topic));
  if (unknown !== undefined)
    throw new Problem(
      400,
      "TOPIC_UNKNOWN",
      `Unknown topic ${JSON.stringify(unknown.slice(0, 100))}. Topics: ${PLAIN_TOPICS.join(", ")}, dag:<dag_id>, run:<dag_id>/<run_id>`,
    );
  // Every user may read everything.
  if (role !== "admin") throw new Problem(403, "FORBIDDEN", `"${name}" may not read: ${topics.join(", ")}`);
}

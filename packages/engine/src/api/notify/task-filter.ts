/** The page, and the DAG, run and task, by which `/deadlines` and `/deliveries` are listed. */
import { z } from "zod";
import { id, pageQuery } from "../server/fields.ts";

export const taskQuery = {
  ...pageQuery,
  dag_id: id.optional(),
  dag_run_id: id.optional(),
  task_id: id.optional(),
};

const query = z.object(taskQuery);

export function taskFilterOf({ dag_id, dag_run_id, task_id }: z.output<typeof query>) {
  return { dagId: dag_id, runId: dag_run_id, taskId: task_id };
}

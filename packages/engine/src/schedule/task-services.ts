/** What a running task may read, answered from the database by the process that supervises it. */
import type { Json } from "@tradewind/sdk/manifest";
import type { TaskServices } from "../execute/contract.ts";
import type { SecretBox } from "../service/secret-box.ts";
import { openConnection } from "../store/connections.ts";
import type { Database } from "../store/database.ts";
import { loadOutputs } from "../store/run-load.ts";
import { findVariable } from "../store/variables.ts";

export function taskServices(database: Database, secretBox: SecretBox): TaskServices {
  return {
    async output(dagRunId, taskId, mapIndex): Promise<Json | undefined> {
      const rows = await loadOutputs(database, [{ runId: dagRunId, taskId }]);
      if (mapIndex !== null) return rows.find((row) => row.map_index === mapIndex)?.value;
      const only = rows.find((row) => row.map_index === -1);
      if (only || rows.length === 0) return only?.value;
      return rows.map((row) => row.value);
    },
    async variable(key) {
      return (await findVariable(database, secretBox, key))?.value;
    },
    connection: (id) => openConnection(database, secretBox, id),
  };
}

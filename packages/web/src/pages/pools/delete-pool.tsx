import { commandOf } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { api } from "../../api/client.ts";
import { POOLS, type Pool, SHOW_POOLS } from "./pool.ts";

export function DeletePool({ pool, onClose }: { readonly pool: Pool; readonly onClose: () => void }) {
  const { name } = pool;
  return (
    <Confirm
      title={`Delete pool ${name}?`}
      action={`Delete pool ${name}`}
      done={`Pool ${name} is deleted`}
      reload={SHOW_POOLS}
      run={() => api.DELETE("/api/v2/pools/{pool_name}", { params: { path: { pool_name: name } } })}
      cli={commandOf("tradewind", "pools", "delete", name, "--yes")}
      request={{ method: "DELETE", path: `${POOLS}/${encodeURIComponent(name)}` }}
      onClose={onClose}
    >
      <p>
        {pool.running_slots + pool.queued_slots} of its tasks are running or queued, {pool.scheduled_slots}{" "}
        want a slot. Tasks that name a missing pool wait until it exists again.
      </p>
    </Confirm>
  );
}

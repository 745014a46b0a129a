import { apiPath } from "../../actions/api-call.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { POOLS, type Pool, SHOW_POOLS } from "./pool.ts";

export function DeletePool({ pool, onClose }: { readonly pool: Pool; readonly onClose: () => void }) {
  const { description, include_deferred, name, slots } = pool;
  return (
    <Confirm
      title={`Delete pool ${name}?`}
      action={`Delete pool ${name}`}
      done={`Pool ${name} is deleted`}
      reload={SHOW_POOLS}
      request={{ method: "DELETE", path: apiPath`/pools/${name}` }}
      undo={{ method: "POST", path: POOLS, body: { name, slots, description, include_deferred } }}
      cli={commandOf("tradewind", "pools", "delete", name, "--yes")}
      onClose={onClose}
    >
      <p>
        {pool.running_slots + pool.queued_slots} of its tasks are running or queued, {pool.scheduled_slots}{" "}
        want a slot. Tasks that name a missing pool wait until it exists again.
      </p>
    </Confirm>
  );
}

import { useState } from "react";
import { change } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { parsed } from "../../forms/schema-form.tsx";
import { Unparsed } from "../../forms/values.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { ASSET_PATHS, type Asset } from "./asset.ts";
import { EVENTS } from "./events.tsx";

/** Records that an asset was changed outside of tasks. */
export function RecordEvent({
  asset,
  onClose,
}: {
  /** Null: the address is typed. */
  readonly asset: Asset | null;
  readonly onClose: () => void;
}) {
  const [address, setAddress] = useState(asset?.uri ?? "");
  const [text, setText] = useState("");
  const [partition, setPartition] = useState("");
  const [busy, setBusy] = useState(false);
  const payload = parsed(text);
  const isWrong = payload instanceof Unparsed;
  const body = {
    uri: address,
    ...(payload !== undefined && !isWrong && { payload }),
    ...(partition !== "" && { partition_key: partition }),
  };
  const request = { method: "POST", path: EVENTS, body } as const;
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={asset === null ? "Record event of an asset" : `Record event of ${asset.uri}`}
      description={asset === null ? "An address that is not known yet creates the asset." : effectOf(asset)}
      footer={
        <>
          <Twin
            cli={commandOf(
              ...["tradewind", "assets", "send", address || "<uri>"],
              payload !== undefined && !isWrong && JSON.stringify(payload),
              ...(partition === "" ? [] : ["--partition", partition]),
            )}
            request={request}
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || address === "" || isWrong}
            onClick={async () => {
              setBusy(true);
              const sent = await change({
                request,
                done: `Event of ${address} is recorded`,
                reload: [...ASSET_PATHS, EVENTS],
              });
              setBusy(false);
              if (sent) onClose();
            }}
          >
            Record event
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {asset === null && (
          <Field label="Address" hint="As in asset(address) of the DAG, e.g. s3://lake/orders" required>
            {(ids) => <Input {...ids} value={address} onChange={(event) => setAddress(event.target.value)} />}
          </Field>
        )}
        <Field label="Payload" hint="JSON; empty for none." error={isWrong ? "This is not JSON" : undefined}>
          {(ids) => (
            <TextArea
              {...ids}
              rows={5}
              value={text}
              placeholder={`{"rows": 120}`}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        <Field label="Partition" hint="Empty: the whole asset.">
          {(ids) => (
            <Input {...ids} value={partition} onChange={(event) => setPartition(event.target.value)} />
          )}
        </Field>
      </div>
    </Dialog>
  );
}

/** What happens then, as far as it is known before. */
function effectOf({ scheduled_dags: dags }: Asset): string {
  if (dags.length === 0) return "No DAG runs on this asset: the event is only recorded.";
  const names = dags.map(({ dag_id }) => dag_id).join(", ");
  return dags.length === 1
    ? `DAG ${names} runs if the condition of its schedule is met.`
    : `${dags.length} DAGs run if the conditions of their schedules are met: ${names}.`;
}

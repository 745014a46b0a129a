import { useState } from "react";
import { apiPath } from "../../actions/api-call.ts";
import { change } from "../../actions/change.ts";
import { commandOf, type Request } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { POOLS, type Pool, SHOW_POOLS } from "./pool.ts";

/** Creates a pool, or changes one. */
export function EditPool({ pool, onClose }: { readonly pool: Pool | null; readonly onClose: () => void }) {
  const [name, setName] = useState(pool?.name ?? "");
  const [slots, setSlots] = useState(String(pool?.slots ?? 4));
  const [description, setDescription] = useState(pool?.description ?? "");
  const [includeDeferred, setIncludeDeferred] = useState(pool?.include_deferred ?? false);
  const [busy, setBusy] = useState(false);
  const isNumber = /^(?:-1|\d+)$/.test(slots);
  const facts = { slots: Number(slots), description: description || null, include_deferred: includeDeferred };
  const request: Request =
    pool === null
      ? { method: "POST", path: POOLS, body: { name, ...facts } }
      : { method: "PATCH", path: apiPath`/pools/${name}`, body: facts };
  const save = async () => {
    setBusy(true);
    const saved = await change({
      request,
      undo:
        pool === null
          ? { method: "DELETE", path: apiPath`/pools/${name}` }
          : {
              ...request,
              body: {
                slots: pool.slots,
                description: pool.description,
                include_deferred: pool.include_deferred,
              },
            },
      done: `Pool ${name} has ${slots === "-1" ? "unlimited" : slots} slots`,
      reload: SHOW_POOLS,
    });
    setBusy(false);
    if (saved) onClose();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={pool === null ? "New pool" : `Pool ${pool.name}`}
      footer={
        <>
          <Twin
            cli={commandOf(
              "tradewind",
              "pools",
              "set",
              name || "<name>",
              slots,
              ...(description ? ["--description", description] : []),
              includeDeferred && "--include-deferred",
            )}
            request={request}
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={busy || name === "" || !isNumber} onClick={() => void save()}>
            {pool === null ? "Create pool" : "Save pool"}
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name !== "" && isNumber) void save();
        }}
      >
        {pool === null && (
          <Field label="Name" required>
            {(ids) => (
              <Input {...ids} value={name} onChange={(event) => setName(event.target.value)} required />
            )}
          </Field>
        )}
        <Field
          label="Slots"
          hint="How many tasks may be queued or running at once; -1 is unlimited. Fewer slots than are used stop no task."
          error={isNumber ? undefined : "A whole number, or -1"}
        >
          {(ids) => (
            <Input
              {...ids}
              inputMode="numeric"
              value={slots}
              onChange={(event) => setSlots(event.target.value.trim())}
            />
          )}
        </Field>
        <Field label="Description">
          {(ids) => (
            <Input {...ids} value={description} onChange={(event) => setDescription(event.target.value)} />
          )}
        </Field>
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            checked={includeDeferred}
            onChange={(event) => setIncludeDeferred(event.target.checked)}
          />
          Deferred tasks keep their slots
        </label>
        <button type="submit" hidden aria-hidden tabIndex={-1} />
      </form>
    </Dialog>
  );
}

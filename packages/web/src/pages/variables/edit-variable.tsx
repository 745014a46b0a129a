import { useState } from "react";
import { apiPath } from "../../actions/api-call.ts";
import { change } from "../../actions/change.ts";
import { commandOf, type Request } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { HIDDEN } from "../../settings/kinds.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { VARIABLES, type Variable } from "./variable.ts";

/** Creates a variable, or changes one. The value of a key that looks like a secret is shown masked, and kept unless it is changed. */
export function EditVariable({
  variable,
  onClose,
}: {
  readonly variable: Variable | null;
  readonly onClose: () => void;
}) {
  const [key, setKey] = useState(variable?.key ?? "");
  const [value, setValue] = useState(variable?.value ?? "");
  const [description, setDescription] = useState(variable?.description ?? "");
  const [busy, setBusy] = useState(false);
  const isChanged = variable === null || value !== (variable.value ?? "");
  const body = { ...(isChanged ? { value } : {}), description: description || null };
  const path = apiPath`/variables/${key}`;
  const request: Request =
    variable === null
      ? { method: "POST", path: VARIABLES, body: { key, value, description: description || null } }
      : { method: "PATCH", path, body };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={variable === null ? "New variable" : `Variable ${variable.key}`}
      footer={
        <>
          <Twin
            cli={commandOf(
              "tradewind",
              "variables",
              "set",
              key || "<key>",
              value,
              ...(description ? ["--description", description] : []),
            )}
            request={request}
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || key === ""}
            onClick={async () => {
              setBusy(true);
              const saved = await change({
                request,
                undo: undoOf(variable, request),
                done: `Variable ${key} is saved`,
                reload: [VARIABLES],
              });
              setBusy(false);
              if (saved) onClose();
            }}
          >
            {variable === null ? "Create variable" : "Save variable"}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {variable === null && (
          <Field label="Key" required>
            {(ids) => <Input {...ids} value={key} onChange={(event) => setKey(event.target.value)} />}
          </Field>
        )}
        <Field label="Value" hint="Text, or JSON, which tasks parse with ctx.variable(key, schema).">
          {(ids) => (
            <TextArea {...ids} rows={6} value={value} onChange={(event) => setValue(event.target.value)} />
          )}
        </Field>
        <Field label="Description">
          {(ids) => (
            <Input {...ids} value={description} onChange={(event) => setDescription(event.target.value)} />
          )}
        </Field>
      </div>
    </Dialog>
  );
}

/** The former value is known unless it is a secret. */
function undoOf(before: Variable | null, request: Request): Request | null {
  if (before === null) {
    const { key } = request.body as { readonly key: string };
    return { method: "DELETE", path: apiPath`/variables/${key}` };
  }
  const { description, value } = before;
  const isKept = !("value" in (request.body as object));
  if (value === HIDDEN && !isKept) return null;
  return { ...request, body: isKept ? { description } : { value, description } };
}

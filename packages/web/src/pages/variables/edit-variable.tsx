import { useState } from "react";
import { change } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { api } from "../../api/client.ts";
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
  const path = `${VARIABLES}/${encodeURIComponent(key)}`;
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
            request={
              variable === null
                ? { method: "POST", path: VARIABLES, body: { key, ...body } }
                : { method: "PATCH", path, body }
            }
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || key === ""}
            onClick={async () => {
              setBusy(true);
              const saved = await change({
                run: () =>
                  variable === null
                    ? api.POST("/api/v2/variables", {
                        body: { key, value, description: description || null },
                      })
                    : api.PATCH("/api/v2/variables/{variable_key}", {
                        params: { path: { variable_key: key } },
                        body: { key, ...body },
                      }),
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

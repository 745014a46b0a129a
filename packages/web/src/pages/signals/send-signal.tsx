import { useState } from "react";
import { change } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";

/** The value of JSON text; an empty text is no value. */
function parse(text: string): { readonly value?: unknown; readonly error?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: `Not JSON: ${(error as Error).message}` };
  }
}

export function SendSignal({
  initialKey,
  onClose,
}: {
  readonly initialKey: string;
  readonly onClose: () => void;
}) {
  const [key, setKey] = useState(initialKey);
  const [text, setText] = useState("{}");
  const [busy, setBusy] = useState(false);
  const { value, error } = parse(text);
  const body = { key, ...(value === undefined ? {} : { value }) };
  const request = { method: "POST", path: "/api/v2/signals", body } as const;
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title="Send signal"
      description="It is stored first; tasks that wait for it react within milliseconds."
      footer={
        <>
          <Twin
            cli={commandOf(
              "tradewind",
              "signals",
              "send",
              key || "<key>",
              value !== undefined && JSON.stringify(value),
            )}
            request={request}
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || key === "" || error !== undefined}
            onClick={async () => {
              setBusy(true);
              const sent = await change({
                request,
                done: `Signal ${key} is stored`,
                reload: ["/ui/signals", "/ui/signals/histogram"],
              });
              setBusy(false);
              if (sent) onClose();
            }}
          >
            Send signal
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <Field label="Key" hint="As in signal(key, schema) of the DAG, e.g. model.ready" required>
          {(ids) => <Input {...ids} value={key} onChange={(event) => setKey(event.target.value)} />}
        </Field>
        <Field label="Value" hint="JSON; empty for a signal without a value." error={error}>
          {(ids) => (
            <TextArea {...ids} rows={6} value={text} onChange={(event) => setText(event.target.value)} />
          )}
        </Field>
      </div>
    </Dialog>
  );
}

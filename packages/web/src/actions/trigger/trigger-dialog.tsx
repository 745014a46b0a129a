/** Starts a run of a DAG manually, with a form for its params. */
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { toast } from "sonner";
import { $api } from "../../api/client.ts";
import { ApiProblem, messageOf } from "../../api/problem.ts";
import type { components } from "../../api/schema.gen.ts";
import { type FormField, fieldOf } from "../../forms/fields.ts";
import { parsed, SchemaForm } from "../../forms/schema-form.tsx";
import { serverErrors } from "../../forms/server-errors.ts";
import {
  changedFrom,
  type FormErrors,
  initialValue,
  jsonOf,
  problemsOf,
  Unparsed,
} from "../../forms/values.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Menu, MenuItem } from "../../ui/menu.tsx";
import { Loading, Loads } from "../../ui/panels.tsx";
import { Segmented } from "../../ui/tabs.tsx";
import { send } from "../api-call.ts";
import { reloadPaths } from "../change.ts";
import { Twin } from "../twin.tsx";
import { type RecentConf, recentConfs } from "./recent-confs.ts";
import { triggerCommand, triggerRequest } from "./trigger-request.ts";

const JsonEditor = lazy(() => import("../../code/json-editor.tsx"));

type Run = components["schemas"]["DAGRunResponse"];
type Values = Readonly<Record<string, unknown>>;

export function TriggerDialog({ dagId, onClose }: { readonly dagId: string; readonly onClose: () => void }) {
  const details = $api.useQuery("get", "/api/v2/dags/{dag_id}/details", {
    params: { path: { dag_id: dagId } },
  });
  const latest = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagRuns", {
    params: { path: { dag_id: dagId }, query: { run_type: ["manual"], limit: 50, order_by: "-run_after" } },
  });
  if (details.data !== undefined && !latest.isPending)
    return (
      <TriggerForm dag={details.data} recent={recentConfs(latest.data?.dag_runs ?? [])} onClose={onClose} />
    );
  return (
    <Dialog open onOpenChange={onClose} title={`Trigger ${dagId}`}>
      <Loads query={details}>{() => null}</Loads>
    </Dialog>
  );
}

const NO_ERRORS: FormErrors = new Map();
const MODES = [
  { value: "form", label: "Form" },
  { value: "json", label: "JSON" },
] as const;

function TriggerForm({
  dag,
  recent,
  onClose,
}: {
  readonly dag: components["schemas"]["DAGDetailsResponse"];
  readonly recent: readonly RecentConf[];
  readonly onClose: () => void;
}) {
  const dagId = dag.dag_id;
  const navigate = useNavigate();
  const field = useMemo(() => fieldOf(dag.params_schema ?? {}, "conf"), [dag.params_schema]);
  const defaults = useMemo<Values>(
    () => (field.kind === "object" ? (initialValue(field) as Values) : (dag.params ?? {})),
    [field, dag.params],
  );
  const [values, setValues] = useState<Values>(defaults);
  const [mode, setMode] = useState<"form" | "json">(field.kind === "object" ? "form" : "json");
  const [text, setText] = useState(() => JSON.stringify(defaults, null, 2));
  const [logicalDate, setLogicalDate] = useState("");
  const [note, setNote] = useState("");
  const [errors, setErrors] = useState(NO_ERRORS);
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);

  const typed = mode === "json" ? (parsed(text) ?? {}) : values;
  const isObject =
    typeof typed === "object" && typed !== null && !Array.isArray(typed) && !(typed instanceof Unparsed);
  const conf = isObject ? changedFrom(defaults, jsonOf(typed) as Values) : {};
  const input = { dagId, conf, logicalDate, note };
  const show = (next: Values) => {
    setValues(next);
    setText(JSON.stringify(jsonOf(next), null, 2));
    setErrors(NO_ERRORS);
  };

  const trigger = async () => {
    setProblem(undefined);
    const local = mode === "form" ? problemsOf(field, values) : NO_ERRORS;
    if (!isObject) return setProblem("The params are not a JSON object.");
    if (local.size > 0) return setErrors(local);
    setBusy(true);
    try {
      const { dag_run_id: runId } = await send<Run>(triggerRequest(input));
      onClose();
      toast.success(`Triggered ${dagId}`, {
        description: runId,
        action: {
          label: "Open the run",
          onClick: () =>
            void navigate({
              to: `/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}` as "/",
            }),
        },
      });
      await reloadPaths(["/ui/dags", "/ui/dags/{dag_id}/grid", "/api/v2/dags/{dag_id}/dagRuns"]);
    } catch (error) {
      const found = error instanceof ApiProblem ? serverErrors(error, "conf") : null;
      if (found === null || mode === "json") setProblem(messageOf(error));
      setErrors(found ?? NO_ERRORS);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Trigger ${dagId}`}
      description={
        dag.is_paused
          ? "The DAG is paused: the run is queued, and starts when the schedule is resumed."
          : undefined
      }
      footer={
        <>
          <span className="mr-auto">
            <Twin cli={triggerCommand(input)} request={triggerRequest(input)} />
          </span>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={busy} type="submit" form="trigger-form">
            {busy ? "Triggering…" : `Trigger ${dagId}`}
          </Button>
        </>
      }
    >
      <form
        id="trigger-form"
        className="flex flex-col gap-4"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void trigger();
        }}
      >
        {problem !== undefined && (
          <p role="alert" className="rounded-md bg-danger-soft px-3 py-2">
            {problem}
          </p>
        )}
        <section className="flex flex-col gap-3">
          <div className="flex flex-wrap items-center gap-2">
            <h3 className="mr-auto">Params</h3>
            {recent.length > 0 && (
              <Menu trigger={<Button kind="quiet">As before…</Button>}>
                {recent.map(({ at, conf: used, text: words }) => (
                  <MenuItem key={words} onSelect={() => show({ ...defaults, ...used })}>
                    <span className="max-w-80 truncate" title={words}>
                      {words}
                    </span>
                    <span className="ml-auto pl-4 text-sm text-muted">
                      <Ago at={at} />
                    </span>
                  </MenuItem>
                ))}
              </Menu>
            )}
            {Object.keys(conf).length > 0 && (
              <Button kind="quiet" onClick={() => show(defaults)}>
                Defaults
              </Button>
            )}
            {field.kind === "object" && (
              <Segmented
                label="Edit the params as"
                options={MODES}
                value={mode}
                onChange={(next) => {
                  if (next === "json") setText(JSON.stringify(jsonOf(values), null, 2));
                  else if (isObject) setValues(typed as Values);
                  setMode(next);
                }}
              />
            )}
          </div>
          <Params {...{ mode, field, values, text, errors }} onValues={setValues} onText={setText} />
        </section>
        <section className="flex flex-col gap-3 border-t border-line pt-3">
          <Field
            label="Logical date, in UTC"
            hint="Usually empty. Set it to run for a date of the schedule in the past."
          >
            {(ids) => (
              <Input
                {...ids}
                type="datetime-local"
                step={1}
                value={logicalDate}
                className="max-w-56"
                onChange={(event) => setLogicalDate(event.target.value)}
              />
            )}
          </Field>
          <Field label="Note">
            {(ids) => (
              <Input
                {...ids}
                value={note}
                maxLength={1_000}
                placeholder="Why this run?"
                onChange={(event) => setNote(event.target.value)}
              />
            )}
          </Field>
        </section>
      </form>
    </Dialog>
  );
}

function Params({
  mode,
  field,
  values,
  text,
  errors,
  onValues,
  onText,
}: {
  readonly mode: "form" | "json";
  readonly field: FormField;
  readonly values: Values;
  readonly text: string;
  readonly errors: FormErrors;
  readonly onValues: (values: Values) => void;
  readonly onText: (text: string) => void;
}) {
  if (mode === "json")
    return (
      <Suspense fallback={<Loading label="Loading the editor" />}>
        <JsonEditor label="Params as JSON" value={text} onChange={onText} />
      </Suspense>
    );
  if (field.kind === "object" && field.fields.length > 0)
    return (
      <SchemaForm
        field={field}
        value={values}
        errors={errors}
        onChange={(next) => onValues(next as Values)}
      />
    );
  return <p className="text-muted">This DAG has no params.</p>;
}

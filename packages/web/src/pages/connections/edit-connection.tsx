import { useState } from "react";
import { apiPath } from "../../actions/api-call.ts";
import { change } from "../../actions/change.ts";
import { commandOf, type Request } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { CONNECTIONS, type Connection, TYPES } from "./connection.ts";

interface Draft {
  readonly connection_id: string;
  readonly conn_type: string;
  readonly host: string;
  readonly port: string;
  readonly schema: string;
  readonly login: string;
  readonly password: string;
  readonly extra: string;
  readonly description: string;
}

const TEXTS = [
  ["host", "Host"],
  ["port", "Port"],
  ["schema", "Database or path"],
  ["login", "Login"],
] as const;

function draftOf(connection: Connection | null): Draft {
  return {
    connection_id: connection?.connection_id ?? "",
    conn_type: connection?.conn_type ?? "postgres",
    host: connection?.host ?? "",
    port: connection?.port === null || connection === null ? "" : String(connection.port),
    schema: connection?.schema ?? "",
    login: connection?.login ?? "",
    password: "",
    extra: "",
    description: connection?.description ?? "",
  };
}

/** Creates a connection, or changes one. Its password and extra are never shown; left empty, they stay as they are. */
export function EditConnection({
  connection,
  onClose,
}: {
  readonly connection: Connection | null;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(connection));
  const [busy, setBusy] = useState(false);
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const { connection_id: id } = draft;
  const isPort = draft.port === "" || /^\d{1,5}$/.test(draft.port);
  const body = {
    connection_id: id,
    conn_type: draft.conn_type,
    host: draft.host || null,
    port: draft.port === "" ? null : Number(draft.port),
    schema: draft.schema || null,
    login: draft.login || null,
    description: draft.description || null,
    ...(draft.password === "" ? {} : { password: draft.password }),
    ...(draft.extra === "" ? {} : { extra: draft.extra }),
  };
  const requestOf = (fields: object): Request =>
    connection === null
      ? { method: "POST", path: CONNECTIONS, body: fields }
      : { method: "PATCH", path: apiPath`/connections/${id}`, body: fields };
  const save = async () => {
    setBusy(true);
    const saved = await change({
      request: requestOf(body),
      undo: undoOf(connection, body),
      done: `Connection ${id} is saved`,
      reload: [CONNECTIONS],
    });
    setBusy(false);
    if (saved) onClose();
  };
  // Secrets belong neither into a clipboard nor into the history of a shell.
  const shown = { ...body, ...("password" in body ? { password: "<password>" } : {}) };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={connection === null ? "New connection" : `Connection ${connection.connection_id}`}
      footer={
        <>
          <Twin
            cli={commandOf(
              "tradewind",
              "connections",
              "set",
              id || "<id>",
              "--type",
              draft.conn_type,
              ...(draft.host ? ["--host", draft.host] : []),
              ...(draft.port ? ["--port", draft.port] : []),
              ...(draft.schema ? ["--schema", draft.schema] : []),
              ...(draft.login ? ["--login", draft.login] : []),
              ...(draft.password ? ["--password", "@password.txt"] : []),
            )}
            request={requestOf(shown)}
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || id === "" || draft.conn_type === "" || !isPort}
            onClick={() => void save()}
          >
            {connection === null ? "Create connection" : "Save connection"}
          </Button>
        </>
      }
    >
      <div className="grid gap-4 sm:grid-cols-2">
        {connection === null && (
          <Field label="Id" required>
            {(ids) => (
              <Input {...ids} value={id} onChange={(event) => set({ connection_id: event.target.value })} />
            )}
          </Field>
        )}
        <Field label="Type" required>
          {(ids) => (
            <Input
              {...ids}
              list="connection-types"
              value={draft.conn_type}
              onChange={(event) => set({ conn_type: event.target.value })}
            />
          )}
        </Field>
        <datalist id="connection-types">
          {TYPES.map((type) => (
            <option key={type} value={type} />
          ))}
        </datalist>
        {TEXTS.map(([name, label]) => (
          <Field
            key={name}
            label={label}
            error={name === "port" && !isPort ? "A number from 0 to 65535" : undefined}
          >
            {(ids) => (
              <Input
                {...ids}
                value={draft[name]}
                autoComplete="off"
                onChange={(event) => set({ [name]: event.target.value })}
              />
            )}
          </Field>
        ))}
        <Field label="Password" hint={connection === null ? undefined : "Empty: it stays as it is."}>
          {(ids) => (
            <Input
              {...ids}
              type="password"
              autoComplete="new-password"
              value={draft.password}
              onChange={(event) => set({ password: event.target.value })}
            />
          )}
        </Field>
        <Field label="Description">
          {(ids) => (
            <Input
              {...ids}
              value={draft.description}
              onChange={(event) => set({ description: event.target.value })}
            />
          )}
        </Field>
        <div className="sm:col-span-2">
          <Field
            label="Extra"
            hint={`More options as JSON, sealed like the password.${connection === null ? "" : " Empty: they stay as they are."}`}
          >
            {(ids) => (
              <TextArea
                {...ids}
                rows={3}
                value={draft.extra}
                onChange={(event) => set({ extra: event.target.value })}
              />
            )}
          </Field>
        </div>
        {connection !== null && (
          <div className="flex flex-col gap-1.5 sm:col-span-2">
            <h3>Test it</h3>
            <p className="text-muted">
              From a machine that reaches the system: the API server itself opens no connection to other
              systems.
            </p>
            <Copyable text={commandOf("tradewind", "connections", "test", connection.connection_id)} />
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** Secrets are not known, so a change of one cannot be taken back. */
function undoOf(before: Connection | null, body: { readonly connection_id: string }): Request | null {
  const path = apiPath`/connections/${body.connection_id}`;
  if (before === null) return { method: "DELETE", path };
  if ("password" in body || "extra" in body) return null;
  const { conn_type, connection_id, description, host, login, port, schema } = before;
  return {
    method: "PATCH",
    path,
    body: { conn_type, connection_id, description, host, login, port, schema },
  };
}

/** What differs between two versions, besides the text: tasks, groups, edges and options. */
import { $api } from "../../api/client.ts";
import { Loads } from "../../ui/panels.tsx";

export function VersionChanges({
  dagId,
  from,
  to,
}: {
  readonly dagId: string;
  readonly from: number;
  readonly to: number;
}) {
  const diff = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagVersions/diff", {
    params: { path: { dag_id: dagId }, query: { from, to } },
  });
  return (
    <Loads query={diff}>
      {({ edges, groups, options, tasks, is_same_code: isSameCode }) => {
        const lines = [
          ...tasks.added.map((id) => `New task ${id}`),
          ...tasks.removed.map((id) => `Removed task ${id}`),
          ...tasks.changed.map(({ fields, id }) => `${id}: ${fields.map(fieldText).join(", ")}`),
          ...groups.added.map((id) => `New group ${id}`),
          ...groups.removed.map((id) => `Removed group ${id}`),
          ...groups.changed.map(({ fields, id }) => `Group ${id}: ${fields.map(fieldText).join(", ")}`),
          ...edges.added.map((edge) => `${edge.from} → ${edge.to}`),
          ...edges.removed.map((edge) => `No longer ${edge.from} → ${edge.to}`),
          ...options.map((option) => `DAG: ${fieldText(option)}`),
        ];
        return (
          <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1 border-b border-line px-4 py-2">
            <span className="font-medium">
              v{from} → v{to}
            </span>
            {lines.length === 0 && (
              <span className="text-muted">
                {isSameCode
                  ? "The same code."
                  : "The same tasks, edges and options; only code of tasks differs."}
              </span>
            )}
            {lines.slice(0, SHOWN).map((line) => (
              <span key={line} className="max-w-96 truncate text-muted" title={line}>
                {line}
              </span>
            ))}
            {lines.length > SHOWN && (
              <span className="text-muted">and {lines.length - SHOWN} other changes</span>
            )}
          </div>
        );
      }}
    </Loads>
  );
}

const SHOWN = 12;

function fieldText({
  field,
  from,
  to,
}: {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}) {
  return `${field} ${short(from)} → ${short(to)}`;
}

function short(value: unknown): string {
  const text = value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}

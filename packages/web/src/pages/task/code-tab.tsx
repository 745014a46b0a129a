/** The code of the version that the instance ran, and who changed the instance manually. */
import { $api } from "../../api/client.ts";
import { Ago } from "../../time/time.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import type { TaskAddress } from "./task-data.ts";

export function CodeTab({
  address,
  version,
}: {
  readonly address: TaskAddress;
  readonly version: number | null;
}) {
  const source = $api.useQuery("get", "/api/v2/dagSources/{dag_id}", {
    params: {
      path: { dag_id: address.dagId },
      query: version === null ? {} : { version_number: version },
    },
  });
  return (
    <Loads query={source}>
      {({ content, version_number }) => (
        <section aria-label="Code" className="py-2">
          <p className="flex items-center gap-2 px-4 text-muted">
            Version {version_number} of {address.dagId}
            <CopyButton text={content ?? ""} label="Copy the code" />
          </p>
          <SourceLines text={content ?? ""} taskId={address.taskId} />
        </section>
      )}
    </Loads>
  );
}

/** The line that names the task is marked. */
function SourceLines({ text, taskId }: { readonly text: string; readonly taskId: string }) {
  const lines = text.split("\n");
  const own = taskId.split(".").at(-1)!;
  const named = lines.findIndex((line) => line.includes(`"${own}"`) || line.includes(`'${own}'`));
  return (
    <pre className="w-max min-w-full leading-5">
      {lines.map((line, at) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text have no other key
          key={at}
          ref={at === named ? (element) => element?.scrollIntoView({ block: "center" }) : undefined}
          className={at === named ? "bg-accent-soft" : undefined}
        >
          <span className="inline-block w-14 pr-4 text-right text-faint select-none">{at + 1}</span>
          {line}
        </div>
      ))}
    </pre>
  );
}

export function AuditTab({ address }: { readonly address: TaskAddress }) {
  const events = $api.useQuery("get", "/api/v2/eventLogs", {
    params: {
      query: {
        dag_id: address.dagId,
        run_id: address.runId,
        task_id: address.taskId,
        limit: 100,
        order_by: "-when",
      },
    },
  });
  return (
    <Loads query={events}>
      {({ event_logs: found }) =>
        found.length === 0 ? (
          <Empty title="No manual change">
            When a person clears, marks or resumes it, this page says who did it and when.
          </Empty>
        ) : (
          <ol className="max-w-3xl px-4 py-2">
            {found.map((each) => (
              <li key={each.event_log_id} className="border-b border-line py-2 last:border-b-0">
                <p className="flex gap-3">
                  <span className="w-24 shrink-0 text-muted">
                    <Ago at={each.when} />
                  </span>
                  <span className="font-medium">{each.owner ?? "unknown"}</span>
                  <code>{each.event}</code>
                </p>
                {each.extra !== null && <Extra text={each.extra} />}
              </li>
            ))}
          </ol>
        )
      }
    </Loads>
  );
}

function Extra({ text }: { readonly text: string }) {
  try {
    return (
      <div className="pl-27">
        <JsonTree value={JSON.parse(text)} name="extra" />
      </div>
    );
  } catch {
    return <p className="pl-27 break-words text-muted">{text}</p>;
  }
}

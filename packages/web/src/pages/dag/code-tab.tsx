/** The source of each version, what changed between two of them, and the error of the file while it does not load. */
import { lazy, Suspense } from "react";
import { $api } from "../../api/client.ts";
import { usePreferences } from "../../app/preferences.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { dateTime } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Select } from "../../ui/field.tsx";
import { Empty, Loading, Loads } from "../../ui/panels.tsx";
import type { DagDetails } from "./dag-header.tsx";
import { VersionChanges } from "./version-changes.tsx";

const CodeView = lazy(() => import("../../code/code-view.tsx"));
const VERSIONS = "/api/v2/dags/{dag_id}/dagVersions";

export function CodeTab({ dag }: { readonly dag: DagDetails }) {
  const dagId = dag.dag_id;
  const [search, setSearch] = useSearchState();
  const { zone } = usePreferences();
  const path = { dag_id: dagId };
  const versions = $api.useQuery("get", VERSIONS, {
    params: { path, query: { limit: 100, order_by: ["-version_number"] } },
  });
  useReload(`dag:${dagId}`, [VERSIONS]);
  const list = versions.data?.dag_versions ?? [];
  const newest = list[0]?.version_number;
  const version = Number(textOf(search, "version") ?? newest);
  const compared = textOf(search, "compare");
  return (
    <Loads query={versions}>
      {() =>
        newest === undefined ? (
          <Empty title={`${dagId} has no version`}>Its file has not been loaded yet.</Empty>
        ) : (
          <div className="flex min-h-0 flex-1 flex-col">
            <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
              <Select
                aria-label="Version"
                value={version}
                onChange={(event) => setSearch({ version: event.target.value })}
              >
                {list.map((each) => (
                  <option key={each.id} value={each.version_number}>
                    v{each.version_number}, {dateTime(Date.parse(each.created_at), zone).slice(0, 16)}
                  </option>
                ))}
              </Select>
              <Select
                aria-label="Compare with"
                value={compared ?? ""}
                disabled={list.length < 2}
                onChange={(event) => setSearch({ compare: event.target.value })}
              >
                <option value="">Compare with…</option>
                {list
                  .filter((each) => each.version_number !== version)
                  .map((each) => (
                    <option key={each.id} value={each.version_number}>
                      v{each.version_number}
                    </option>
                  ))}
              </Select>
              <code className="min-w-0 truncate text-muted" title={dag.fileloc}>
                {dag.relative_fileloc ?? dag.fileloc}
              </code>
              <span className="ml-auto text-muted">
                {list.length} {list.length === 1 ? "version" : "versions"}, the newest{" "}
                <Ago at={list[0]?.created_at} />
              </span>
            </div>
            {compared === undefined ? (
              <Source dagId={dagId} version={version} />
            ) : (
              <Difference dagId={dagId} version={version} compared={Number(compared)} />
            )}
          </div>
        )
      }
    </Loads>
  );
}

function useSource(dagId: string, version: number) {
  return $api.useQuery(
    "get",
    "/api/v2/dagSources/{dag_id}",
    { params: { path: { dag_id: dagId }, query: { version_number: version } } },
    { staleTime: Number.POSITIVE_INFINITY },
  );
}

function Source({ dagId, version }: { readonly dagId: string; readonly version: number }) {
  const source = useSource(dagId, version);
  return (
    <Loads query={source}>
      {({ content }) =>
        content === null ? (
          <Empty title="The source of this version is not stored" />
        ) : (
          <div className="relative min-h-0 flex-1">
            <Suspense fallback={<Loading label="Loading the editor" />}>
              <CodeView text={content} label={`Source of ${dagId}, version ${version}`} />
            </Suspense>
            <span className="absolute top-2 right-5">
              <CopyButton text={content} label="Copy the source" />
            </span>
          </div>
        )
      }
    </Loads>
  );
}

function Difference({
  dagId,
  version,
  compared,
}: {
  readonly dagId: string;
  readonly version: number;
  readonly compared: number;
}) {
  const [from, to] = version < compared ? [version, compared] : [compared, version];
  const before = useSource(dagId, from);
  const after = useSource(dagId, to);
  return (
    <>
      <VersionChanges dagId={dagId} from={from} to={to} />
      <Loads query={before}>
        {(old) => (
          <Loads query={after}>
            {({ content }) => (
              <div className="min-h-0 flex-1">
                <Suspense fallback={<Loading label="Loading the editor" />}>
                  <CodeView
                    text={content ?? ""}
                    before={old.content ?? ""}
                    label={`Changes of ${dagId} from version ${from} to ${to}`}
                  />
                </Suspense>
              </div>
            )}
          </Loads>
        )}
      </Loads>
    </>
  );
}

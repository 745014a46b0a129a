import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { $api } from "../../api/client.ts";
import { assetPath, dagPath } from "../../app/paths.ts";
import { LazyGraph } from "../../graph/lazy-graph.tsx";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import { Empty, Loads } from "../../ui/panels.tsx";
import { assetKey, type Lineage as LineageData, lineageStructure } from "./lineage-structure.ts";

const NONE: ReadonlySet<string> = new Set();
const nothing = () => {};

/** Which DAGs produce and use which assets: around one asset, or all. */
export function Lineage({ assetId, text = "" }: { readonly assetId?: number; readonly text?: string }) {
  const query = $api.useQuery("get", "/ui/lineage", {
    params: { query: assetId === undefined ? {} : { asset_id: assetId } },
  });
  useReload("dags", ["/ui/lineage"]);
  return (
    <Loads query={query}>{(lineage) => <Graph lineage={lineage} assetId={assetId} text={text} />}</Loads>
  );
}

function Graph({
  lineage,
  assetId,
  text,
}: {
  readonly lineage: LineageData;
  readonly assetId: number | undefined;
  readonly text: string;
}) {
  const navigate = useNavigate();
  // States change more often than the structure, whose layout is expensive.
  const shape = JSON.stringify(lineageStructure(lineage).structure);
  const structure = useMemo(
    () => JSON.parse(shape) as ReturnType<typeof lineageStructure>["structure"],
    [shape],
  );
  const { nodes } = useMemo(() => lineageStructure(lineage), [lineage]);
  const stateOf = useCallback((place: number) => ({ state: nodes[place]?.state ?? null }), [nodes]);
  const open = useCallback(
    (key: string) => {
      const [kind] = key.split(" ", 1);
      const id = key.slice(kind!.length + 1);
      if (kind === "dag") void navigate({ to: dagPath(id) });
      if (kind === "asset") void navigate({ to: assetPath(Number(id)), search: { tab: "lineage" } as never });
    },
    [navigate],
  );
  if (structure.tasks.length === 0)
    return (
      <Empty title="No DAG names an asset yet">
        DAGs and the data between them appear here as a graph, once a task has <code>produces: [orders]</code>
        .
      </Empty>
    );
  return (
    <div className="flex size-full flex-col">
      {lineage.more && (
        <p className="px-4 py-1 text-muted">
          Only the first {count(lineage.edges.length)} connections are shown
        </p>
      )}
      <div className="min-h-0 flex-1">
        <LazyGraph
          structure={structure}
          stateOf={stateOf}
          worstOf={undefined}
          collapsed={NONE}
          onToggle={nothing}
          selected={assetId === undefined ? undefined : assetKey(assetId)}
          onSelect={open}
          text={text}
          label={`Lineage of ${count(lineage.assets.length)} assets and ${count(lineage.dags.length)} DAGs`}
        />
      </div>
    </div>
  );
}

/** The graph of a run's tasks, in their states. */

import { useCallback, useMemo, useState } from "react";
import { textOf, useSearchState } from "../../app/search.ts";
import { LazyGraph } from "../../graph/lazy-graph.tsx";
import type { Timeline } from "../../timeline/timeline-data.ts";
import { stateOf, worst } from "../../timeline/timeline-rows.ts";
import { SearchBox } from "../../ui/field.tsx";

export function RunGraph({ timeline }: { readonly timeline: Timeline }) {
  const [search, setSearch] = useSearchState();
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const text = textOf(search, "q") ?? "";
  const { tasks } = timeline;
  // The answer is another one with each change of a state, its tasks and edges are not.
  const { edges, groups, tasks: nodes } = timeline.structure;
  const structure = useMemo(() => ({ tasks: nodes, groups, edges }), [nodes, groups, edges]);
  const nodeOf = useMemo(
    () => (place: number) => {
      const task = tasks[place]!;
      return {
        state: stateOf(task),
        instances: task.map?.instances,
        isRetried: (task.map?.tries ?? task.instances[0]?.tries ?? 0) > 1,
      };
    },
    [tasks],
  );
  const worstOf = useMemo(
    () => (places: readonly number[]) => worst(new Set(places.map((place) => stateOf(tasks[place]!)))),
    [tasks],
  );
  const toggle = useCallback(
    (group: string) =>
      setCollapsed((before) => {
        const next = new Set(before);
        if (!next.delete(group)) next.add(group);
        return next;
      }),
    [],
  );
  const select = useCallback((task: string) => setSearch({ task }), [setSearch]);
  return (
    <div className="flex min-w-0 flex-1 flex-col">
      <div className="w-52 py-2 pl-4">
        <SearchBox label="Find a task" value={text} onChange={(q) => setSearch({ q })} />
      </div>
      <div className="min-h-0 flex-1">
        <LazyGraph
          structure={structure}
          stateOf={nodeOf}
          worstOf={worstOf}
          collapsed={collapsed}
          onToggle={toggle}
          selected={textOf(search, "task")}
          onSelect={select}
          text={text}
        />
      </div>
    </div>
  );
}

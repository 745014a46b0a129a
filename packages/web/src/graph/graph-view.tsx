/** The tasks of a DAG as a graph, coloured by their states in a run. Loaded only when it is shown. */
import {
  Background,
  Controls,
  type Edge,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { memo, useContext, useEffect, useMemo, useRef, useState } from "react";
import { messageOf } from "../api/problem.ts";
import { usePreferences } from "../app/preferences.ts";
import { count } from "../time/format.ts";
import { Empty, Loading } from "../ui/panels.tsx";
import type { Boxes, Direction } from "./elk-graph.ts";
import { groupsToCollapse, type Structure, taskKey, type VisibleGraph, visibleGraph } from "./graph-model.ts";
import {
  endsOf,
  type GraphStates,
  GroupBox,
  type GroupNode,
  StatesOfGraph,
  TaskBox,
  type TaskNode,
} from "./graph-nodes.tsx";
import { layOut } from "./layout.ts";
import { aroundNode, LEAST_ZOOM, wholeGraph } from "./viewport.ts";

export interface GraphProps extends GraphStates {
  readonly structure: Structure;
  readonly collapsed: ReadonlySet<string>;
  readonly onToggle: (groupId: string) => void;
  readonly selected: string | undefined;
  readonly onSelect: (taskId: string) => void;
  /** Tasks whose ids do not contain it are dimmed. */
  readonly text?: string;
  readonly direction?: Direction;
  /** What it shows, for screen readers; by default the number of tasks. */
  readonly label?: string;
}

/** More are neither readable nor fast. */
const MOST_NODES = 2_000;
const MOST_WITHOUT_GROUPS = 4_000;
const TYPES = { task: TaskBox, cluster: GroupBox };

export default function GraphView(props: GraphProps) {
  return (
    <ReactFlowProvider>
      <Graph {...props} />
    </ReactFlowProvider>
  );
}

interface LaidOut {
  readonly graph: VisibleGraph;
  readonly boxes: Boxes;
  readonly direction: Direction;
}

function Graph(props: GraphProps) {
  const { structure, collapsed, onToggle, direction = "RIGHT" } = props;
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const closed = useMemo(
    () => groupsToCollapse(structure, collapsed, opened, MOST_NODES),
    [structure, collapsed, opened],
  );
  const graph = useMemo(() => visibleGraph(structure, closed), [structure, closed]);
  const [laidOut, setLaidOut] = useState<LaidOut>();
  const [error, setError] = useState<string>();
  const isTooLarge = graph.nodes.length > MOST_WITHOUT_GROUPS;
  useEffect(() => {
    if (isTooLarge) return;
    let isCurrent = true;
    layOut(graph, direction).then(
      (boxes) => {
        if (isCurrent) setLaidOut({ graph, boxes, direction });
      },
      (problem: unknown) => {
        if (isCurrent) setError(messageOf(problem));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [graph, direction, isTooLarge]);
  const toggle = useMemo(
    () => (groupId: string) => {
      if (closed.has(groupId) && !collapsed.has(groupId))
        setOpened((before) => new Set([...before, groupId]));
      else onToggle(groupId);
    },
    [closed, collapsed, onToggle],
  );
  if (isTooLarge)
    return (
      <Empty title={`${count(graph.nodes.length)} tasks are too many for a graph`}>
        Put tasks into groups, which can be collapsed, or look at the grid.
      </Empty>
    );
  if (error !== undefined) return <Empty title="The graph could not be laid out">{error}</Empty>;
  if (laidOut === undefined) return <Loading label={`Laying out ${count(graph.nodes.length)} nodes`} />;
  const { stateOf, worstOf, ...rest } = props;
  return (
    <States stateOf={stateOf} worstOf={worstOf}>
      <Flow {...rest} laidOut={laidOut} onToggle={toggle} isAutomatic={closed.size > collapsed.size} />
    </States>
  );
}

function States({ stateOf, worstOf, children }: GraphStates & { readonly children: React.ReactNode }) {
  const states = useMemo(() => ({ stateOf, worstOf }), [stateOf, worstOf]);
  return <StatesOfGraph value={states}>{children}</StatesOfGraph>;
}

const Flow = memo(function Flow({
  laidOut,
  structure,
  selected,
  onSelect,
  onToggle,
  text = "",
  label = `Graph of ${structure.tasks.length} tasks`,
  isAutomatic,
}: Omit<GraphProps, keyof GraphStates> & { readonly laidOut: LaidOut; readonly isAutomatic: boolean }) {
  const { boxes, direction, graph } = laidOut;
  const { theme } = usePreferences();
  const isVertical = direction === "DOWN";
  const nodes = useMemo<(TaskNode | GroupNode)[]>(() => {
    const wanted = text.trim().toLowerCase();
    return graph.nodes.map((node) => {
      const box = boxes[node.key] ?? { x: 0, y: 0, width: 120, height: 40 };
      const isDimmed =
        wanted !== "" &&
        !node.places.some((place) => structure.tasks[place]!.task_id.toLowerCase().includes(wanted));
      const { height, width, x, y } = box;
      const shared = {
        ...{ id: node.key, position: { x, y }, width, height },
        handles: endsOf(width, height, isVertical),
        ...(node.parent !== null && { parentId: node.parent }),
        ...{ draggable: false, selectable: false, connectable: false, focusable: false },
      };
      const data = { id: node.id, label: node.label, places: node.places, isDimmed, isVertical };
      if (node.kind === "task") {
        const [place] = node.places;
        const task = structure.tasks[place!]!;
        return {
          ...shared,
          type: "task" as const,
          data: {
            ...data,
            ...{ operator: task.operator, isMapped: task.is_mapped, isData: task.isData === true },
            ...{ isChosen: node.id === selected, onOpen: onSelect },
          },
        };
      }
      return {
        ...shared,
        type: "cluster" as const,
        zIndex: -1,
        data: { ...data, isOpen: node.kind === "open", onToggle },
      };
    });
  }, [graph, boxes, structure, selected, onSelect, onToggle, text, isVertical]);
  const edges = useMemo<Edge[]>(() => {
    const chosen = selected === undefined ? undefined : taskKey(selected);
    return graph.edges.map(({ from, to }) => {
      const isChosen = from === chosen || to === chosen;
      return {
        ...{ id: `${from}\0${to}`, source: from, target: to, focusable: false, selectable: false },
        style: {
          stroke: isChosen ? "var(--accent)" : "var(--line-strong)",
          strokeWidth: isChosen ? 2 : 1.25,
        },
        zIndex: isChosen ? 1 : 0,
      };
    });
  }, [graph, selected]);
  return (
    <div className="flex size-full flex-col">
      {isAutomatic && (
        <p className="px-4 py-1 text-muted">{count(structure.tasks.length)} tasks: groups are collapsed</p>
      )}
      <ReactFlow
        aria-label={label}
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        colorMode={theme}
        className="min-h-0 flex-1 !bg-bg"
        onlyRenderVisibleElements
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        minZoom={0.05}
        maxZoom={1.5}
        proOptions={{ hideAttribution: true }}
      >
        <Background color="var(--line)" gap={20} />
        <Controls showInteractive={false} className="graph-controls" />
        <Fit laidOut={laidOut} selected={selected} />
      </ReactFlow>
    </div>
  );
});

/**
 * Shows the whole graph, or, if it would be unreadable, the task to look at first: again when other nodes are visible, and not
 * when states change.
 */
function Fit({
  laidOut: { boxes, graph },
  selected,
}: {
  readonly laidOut: LaidOut;
  readonly selected: string | undefined;
}) {
  const { getZoom, setViewport } = useReactFlow();
  const { stateOf } = useContext(StatesOfGraph);
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  const fitted = useRef<VisibleGraph>(null);
  const before = useRef(selected);
  useEffect(() => {
    if (width === 0 || height === 0) return;
    const size = { width, height };
    if (fitted.current !== graph) {
      fitted.current = graph;
      const inState = (state: string) =>
        graph.nodes.find(({ kind, places }) => kind === "task" && stateOf?.(places[0]!).state === state);
      const first =
        inState("failed") ?? inState("running") ?? graph.nodes.find(({ kind }) => kind !== "open");
      const key = selected === undefined ? first?.key : taskKey(selected);
      const viewport =
        wholeGraph(graph, boxes, size) ?? (key === undefined ? null : aroundNode(graph, boxes, size, key));
      if (viewport !== null) void setViewport(viewport);
    } else if (selected !== undefined && selected !== before.current && getZoom() < LEAST_ZOOM) {
      const viewport = aroundNode(graph, boxes, size, taskKey(selected));
      if (viewport !== null) void setViewport(viewport, { duration: 150 });
    }
    before.current = selected;
  }, [width, height, graph, boxes, stateOf, selected, getZoom, setViewport]);
  return null;
}

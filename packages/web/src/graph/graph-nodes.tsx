/** Tasks and groups of a graph as elements. */
import { Handle, type Node, type NodeHandle, type NodeProps, Position } from "@xyflow/react";
import { ChevronDown, ChevronRight, Database } from "lucide-react";
import { createContext, memo, useContext } from "react";
import { StateGlyph } from "../state/glyph.tsx";
import { lookOf } from "../state/states.ts";
import { count } from "../time/format.ts";
import { cx } from "../ui/class-names.ts";

interface NodeState {
  /** Null: not in this run. */
  readonly state: string | null;
  /** Of a mapped task: how many instances have which state. */
  readonly instances?: number | undefined;
  readonly isRetried?: boolean;
}

export interface GraphStates {
  /** By position of the task; undefined: without states. */
  readonly stateOf: ((place: number) => NodeState) | undefined;
  /** The worst of several tasks. */
  readonly worstOf: ((places: readonly number[]) => string | null) | undefined;
}

/** Not in the nodes: a change of states renders what is visible, and leaves the graph as it is. */
export const StatesOfGraph = createContext<GraphStates>({ stateOf: undefined, worstOf: undefined });

interface Shared extends Record<string, unknown> {
  readonly id: string;
  readonly label: string;
  /** Of its tasks. */
  readonly places: readonly number[];
  readonly isDimmed: boolean;
  readonly isVertical: boolean;
}

export type TaskNode = Node<
  Shared & {
    readonly operator: string;
    readonly isMapped: boolean;
    readonly isData: boolean;
    readonly isChosen: boolean;
    readonly onOpen: (taskId: string) => void;
  },
  "task"
>;

export type GroupNode = Node<
  Shared & { readonly isOpen: boolean; readonly onToggle: (groupId: string) => void },
  "cluster"
>;

const END = 4;

/** Where a box begins and ends edges. Known before it is drawn: otherwise, all nodes would be drawn once to measure them. */
export function endsOf(width: number, height: number, isVertical: boolean): NodeHandle[] {
  const size = { width: END, height: END };
  const [x, y] = [width / 2 - END / 2, height / 2 - END / 2];
  return isVertical
    ? [
        { type: "target", position: Position.Top, x, y: -END / 2, ...size },
        { type: "source", position: Position.Bottom, x, y: height - END / 2, ...size },
      ]
    : [
        { type: "target", position: Position.Left, x: -END / 2, y, ...size },
        { type: "source", position: Position.Right, x: width - END / 2, y, ...size },
      ];
}

function Ends({ isVertical }: { readonly isVertical: boolean }) {
  const hidden = "!size-1 !min-h-0 !min-w-0 !border-0 !bg-transparent";
  return (
    <>
      <Handle
        type="target"
        position={isVertical ? Position.Top : Position.Left}
        className={hidden}
        isConnectable={false}
      />
      <Handle
        type="source"
        position={isVertical ? Position.Bottom : Position.Right}
        className={hidden}
        isConnectable={false}
      />
    </>
  );
}

export const TaskBox = memo(function TaskBox({ data }: NodeProps<TaskNode>) {
  const { id, isChosen, isData, isDimmed, isMapped, isVertical, label, onOpen, operator, places } = data;
  const state = useContext(StatesOfGraph).stateOf?.(places[0]!);
  const look = lookOf(state?.state);
  return (
    <>
      <Ends isVertical={isVertical} />
      <button
        type="button"
        onClick={() => onOpen(id)}
        title={isData ? label : id}
        aria-pressed={isChosen}
        className={cx(
          "nodrag pointer-events-auto flex size-full items-center gap-1.5 border bg-surface px-2 text-left leading-tight hover:bg-hover",
          isData ? "rounded-full" : "rounded-md",
          isChosen ? "border-accent outline-2 outline-accent" : "border-line-strong",
          isDimmed && "opacity-30",
        )}
      >
        {isData ? (
          <Database aria-hidden className="ml-1 size-3.5 shrink-0 text-muted" />
        ) : state?.state ? (
          <StateGlyph state={state.state} title={look.label} />
        ) : (
          <span aria-hidden className="size-4 shrink-0 rounded-sm border border-line-strong" />
        )}
        <span className="min-w-0">
          <span className="block truncate">{label}</span>
          <span className="block truncate text-sm leading-3.5 text-muted">
            {isMapped && (state?.instances === undefined ? "mapped, " : `×${count(state.instances)}, `)}
            {operator}
            {state?.isRetried === true && ", retried"}
          </span>
        </span>
      </button>
    </>
  );
});

export const GroupBox = memo(function GroupBox({ data }: NodeProps<GroupNode>) {
  const { id, isDimmed, isOpen, isVertical, label, onToggle, places } = data;
  const state = useContext(StatesOfGraph).worstOf?.(places);
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <div
      className={cx(
        "size-full rounded-lg border border-line-strong",
        isOpen ? "bg-raised/60" : "bg-raised",
        isDimmed && "opacity-30",
      )}
    >
      <Ends isVertical={isVertical} />
      <button
        type="button"
        aria-expanded={isOpen}
        title={id}
        onClick={() => onToggle(id)}
        className={cx(
          "nodrag pointer-events-auto flex w-full items-center gap-1.5 rounded-lg px-2 text-left font-medium hover:bg-hover",
          isOpen ? "h-8" : "h-full",
        )}
      >
        <Icon aria-hidden className="size-3.5 shrink-0 text-muted" />
        {state && <StateGlyph state={state} title={lookOf(state).label} />}
        <span className="truncate">{label}</span>
        <span className="ml-auto shrink-0 text-sm font-normal text-muted">{count(places.length)} tasks</span>
      </button>
    </div>
  );
});

/** Tasks and groups of a graph as elements. */
import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { ChevronDown, ChevronRight, Database } from "lucide-react";
import { memo } from "react";
import { StateGlyph } from "../state/glyph.tsx";
import { lookOf } from "../state/states.ts";
import { count } from "../time/format.ts";
import { cx } from "../ui/class-names.ts";

export interface NodeState {
  /** Null: not in this run. */
  readonly state: string | null;
  /** Of a mapped task: how many instances have which state. */
  readonly instances?: number | undefined;
  readonly isRetried?: boolean;
}

interface Shared extends Record<string, unknown> {
  readonly id: string;
  readonly label: string;
  readonly state: NodeState | undefined;
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
  Shared & { readonly tasks: number; readonly isOpen: boolean; readonly onToggle: (groupId: string) => void },
  "cluster"
>;

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
  const { id, isChosen, isData, isDimmed, isMapped, isVertical, label, onOpen, operator, state } = data;
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
  const { id, isDimmed, isOpen, isVertical, label, onToggle, state, tasks } = data;
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
        {state?.state && <StateGlyph state={state.state} title={lookOf(state.state).label} />}
        <span className="truncate">{label}</span>
        <span className="ml-auto shrink-0 text-sm font-normal text-muted">{count(tasks)} tasks</span>
      </button>
    </div>
  );
});

import { X } from "lucide-react";
import type { ReactNode, Ref } from "react";
import { count } from "../time/format.ts";
import { IconButton } from "./button.tsx";

/** What can be done with the selected rows. It lies over the end of the list, so that no row moves when it appears. */
export function SelectionBar({
  ref,
  selected,
  children,
  onClear,
}: {
  readonly ref: Ref<HTMLDivElement>;
  readonly selected: number;
  readonly children: ReactNode;
  readonly onClear: () => void;
}) {
  return (
    <div className="pointer-events-none sticky bottom-0 left-0 z-20 flex w-full justify-center p-3">
      <div
        ref={ref}
        role="toolbar"
        aria-label="Selected rows"
        className="pointer-events-auto flex flex-wrap items-center gap-1.5 rounded-lg border border-line-strong bg-surface py-1.5 pr-1.5 pl-3 shadow-lg"
      >
        <span role="status" className="mr-1.5 whitespace-nowrap tabular-nums">
          {count(selected)} selected
        </span>
        {children}
        <IconButton label="Deselect all" onClick={onClear}>
          <X />
        </IconButton>
      </div>
    </div>
  );
}

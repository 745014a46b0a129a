import { X } from "lucide-react";
import { type ReactNode, useCallback, useState } from "react";
import { IconButton } from "./button.tsx";

const KEY = "tradewind.pane-width";
const LEAST = 280;
const MOST = 900;

function storedWidth(): number {
  try {
    return Number(localStorage.getItem(KEY)) || 380;
  } catch {
    return 380;
  }
}

/** Details at the right of a page. Its width can be changed with the mouse and the keyboard, and is kept for all pages. */
export function Pane({
  title,
  onClose,
  children,
}: {
  readonly title: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const [width, setWidth] = useState(storedWidth);
  const resize = useCallback((to: number) => {
    const next = Math.round(Math.min(MOST, Math.max(LEAST, to)));
    setWidth(next);
    try {
      localStorage.setItem(KEY, String(next));
    } catch {
      // Storage is disabled: the width lasts until the page is closed.
    }
  }, []);
  return (
    <aside
      aria-label="Details"
      style={{ "--pane": `${width}px` } as React.CSSProperties}
      className="relative flex w-(--pane) shrink-0 flex-col border-l border-line bg-surface max-md:absolute max-md:inset-0 max-md:z-20 max-md:w-full"
    >
      {/* biome-ignore lint/a11y/useSemanticElements: a splitter that can be moved, not a line */}
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label="Width of the details"
        aria-valuenow={width}
        aria-valuemin={LEAST}
        aria-valuemax={MOST}
        tabIndex={0}
        className="absolute inset-y-0 -left-1 z-10 w-2 cursor-col-resize hover:bg-accent/20 max-md:hidden"
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) resize(innerWidth - event.clientX);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft") resize(width + 24);
          if (event.key === "ArrowRight") resize(width - 24);
        }}
      />
      <header className="flex h-11 shrink-0 items-center gap-2 border-b border-line px-4">
        <h2 className="min-w-0 flex-1 truncate">{title}</h2>
        <IconButton label="Close details" onClick={onClose}>
          <X />
        </IconButton>
      </header>
      <div className="min-h-0 flex-1 overflow-auto">{children}</div>
    </aside>
  );
}

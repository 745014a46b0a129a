/** Shortcuts of every page. Single letters are ignored while the focus is in a field, and can be switched off in the settings. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Dialog } from "../ui/dialog.tsx";
import { PAGES } from "./pages.ts";
import { preferences } from "./preferences.ts";

export function Shortcuts({ onPalette }: { readonly onPalette: () => void }) {
  const navigate = useNavigate();
  const [helpOpen, setHelpOpen] = useState(false);
  const pendingGo = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        onPalette();
        return;
      }
      if (!isShortcut(event)) return;
      if (Date.now() - pendingGo.current < 1_500) {
        pendingGo.current = 0;
        const page = PAGES.find(({ key }) => key === event.key);
        if (page) {
          event.preventDefault();
          void navigate({ to: page.to });
        }
        return;
      }
      if (event.key === "g") pendingGo.current = Date.now();
      else if (event.key === "?") setHelpOpen(true);
      else if (event.key === "/") {
        const box = document.querySelector<HTMLInputElement>("main [data-search]");
        if (box === null) return;
        event.preventDefault();
        box.focus();
        box.select();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [navigate, onPalette]);
  return (
    <Dialog open={helpOpen} onOpenChange={setHelpOpen} title="Keyboard shortcuts">
      <dl className="grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1.5">
        {[
          ...GLOBAL,
          ...PAGES.filter(({ key }) => key).map(({ key, label }) => [`g ${key}`, label] as const),
        ].map(([keys, text]) => (
          <div key={keys} className="contents">
            <dt>
              <kbd className="rounded-sm border border-line-strong px-1.5 py-0.5">{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

const GLOBAL: readonly (readonly [string, string])[] = [
  ["⌘K or Ctrl K", "Search or jump to a page, DAG, run or task"],
  ["/", "Search in this page"],
  ["?", "This list"],
  ["Esc", "Close a dialog, a menu or the details"],
  ["↑ ↓ ← →", "Move in the grid and in lists"],
  ["j k", "Next and previous row of a list"],
  ["x", "Select the row"],
  ["Shift x", "Select the rows since the last selected one"],
  ["a", "Go to the actions of the selected rows"],
  ["n", "Next match in a log; N: the one before"],
  ["Home End", "First line of a log; last line, and follow it"],
  ["+ − 0", "Zoom the timeline of a run, and show the whole run"],
];

/** A single key as a shortcut: not while the focus is in a field, and not if the user has switched them off. */
export function isShortcut(event: KeyboardEvent): boolean {
  const { altKey, ctrlKey, metaKey, target } = event;
  return preferences().shortcuts && !metaKey && !ctrlKey && !altKey && !isTyping(target);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    /^(?:textarea|select)$/i.test(target.tagName) ||
    (target instanceof HTMLInputElement && target.type !== "checkbox") ||
    target.closest("[role=dialog], [role=menu], .cm-editor") !== null
  );
}

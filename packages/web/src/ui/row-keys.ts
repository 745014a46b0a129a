/** Keyboard in a table: J and K or arrows move between the rows, other letters act on the row of the focus. */
import { type RefObject, useEffect, useRef } from "react";
import { isShortcut } from "../app/shortcuts.tsx";

/** @param act Called with other keys and the index of the focused row, or -1; returns whether the key means something. */
export function useRowKeys(
  table: RefObject<HTMLElement | null>,
  act: (key: string, index: number) => boolean,
): void {
  const current = useRef(act);
  current.current = act;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || !isShortcut(event)) return;
      const focused = document.activeElement?.closest<HTMLElement>("[data-row]") ?? null;
      const row = table.current?.contains(focused) ? focused : null;
      // The focus is in another table of the page.
      if (focused !== row) return;
      if (move(table.current, row, event.key)) event.preventDefault();
      else if (current.current(event.key, row === null ? -1 : Number(row.dataset["row"])))
        event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [table]);
}

function move(table: HTMLElement | null, row: HTMLElement | null, key: string): boolean {
  if (key !== "j" && key !== "k" && (row === null || !/^Arrow(?:Up|Down)$/.test(key))) return false;
  const rows = [...(table?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const step = key === "j" || key === "ArrowDown" ? 1 : -1;
  const at = row === null ? 0 : rows.indexOf(row) + step;
  const next = rows[Math.min(rows.length - 1, Math.max(0, at))];
  const target = next?.querySelector<HTMLElement>("a, button") ?? next?.querySelector<HTMLElement>("input");
  if (next === undefined || !target) return false;
  target.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

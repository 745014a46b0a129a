/** Keyboard in a list of links: J and K or arrows move between the rows, other letters act on the row of the focus. */
import { type RefObject, useEffect } from "react";
import { isShortcut } from "../app/shortcuts.tsx";

type RowKeys = Readonly<Record<string, (row: string) => void>>;

/** Each row has one link with its key as `data-row`. Enter opens it, as for every link. */
export function useRowKeys(list: RefObject<HTMLElement | null>, actions: RowKeys = {}): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return;
      const links = [...(list.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
      const row = (document.activeElement as HTMLElement | null)?.closest("tr, li");
      const at = row ? links.findIndex((link) => row.contains(link)) : -1;
      const isMove =
        event.key === "j" || event.key === "k" || (at >= 0 && /^Arrow(?:Up|Down)$/.test(event.key));
      if (isMove) {
        const step = event.key === "j" || event.key === "ArrowDown" ? 1 : -1;
        const next = links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + step))];
        next?.focus();
        next?.scrollIntoView({ block: "nearest" });
        if (next) event.preventDefault();
        return;
      }
      const act = at < 0 ? undefined : actions[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act(links[at]!.dataset["row"]!);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [list, actions]);
}

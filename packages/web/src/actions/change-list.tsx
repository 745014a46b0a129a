import type { ReactNode } from "react";
import { count } from "../time/format.ts";

interface Changed {
  readonly key: string;
  readonly name: string;
  /** What happens to it, or where it belongs. */
  readonly note: ReactNode;
}

const SHOWN = 200;

/** What a change concerns, if that is not task instances: runs, DAGs, settings. */
export function ChangeList({ label, items }: { readonly label: string; readonly items: readonly Changed[] }) {
  return (
    <section aria-label={label} className="flex flex-col gap-2">
      <ul className="max-h-80 overflow-auto rounded-md border border-line">
        {items.slice(0, SHOWN).map(({ key, name, note }) => (
          <li
            key={key}
            className="flex min-h-7 items-center justify-between gap-3 border-b border-line px-2.5 last:border-b-0"
          >
            <span className="truncate font-medium">{name}</span>
            <span className="text-right text-sm text-muted">{note}</span>
          </li>
        ))}
      </ul>
      {items.length > SHOWN && <p className="text-sm text-muted">and {count(items.length - SHOWN)} more</p>}
    </section>
  );
}

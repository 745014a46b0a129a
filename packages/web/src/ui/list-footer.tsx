import { bounded, count } from "../time/format.ts";
import { Button } from "./button.tsx";

/** Below a list that is loaded in pages: how many rows are shown, of how many, and a button for more. */
export function ListFooter({
  shown,
  total,
  hasMore,
  isLoading,
  onMore,
}: {
  readonly shown: number;
  /** null: unknown. */
  readonly total: number | { readonly count: number; readonly more: boolean } | null | undefined;
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly onMore: () => unknown;
}) {
  const all =
    total === null || total === undefined ? null : typeof total === "number" ? count(total) : bounded(total);
  return (
    <div className="flex items-center gap-3 px-1.5 text-sm text-muted">
      {shown === 0 ? "0" : `1–${count(shown)}`}
      {all !== null && ` of ${all}`}
      {hasMore && (
        <Button disabled={isLoading} onClick={() => void onMore()}>
          {isLoading ? "Loading…" : "Show more"}
        </Button>
      )}
    </div>
  );
}

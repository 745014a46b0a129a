import { cx } from "../../ui/class-names.ts";

/** Whether a process is alive, in a word with its mark. */
export function Alive({ isAlive, word }: { readonly isAlive: boolean; readonly word?: string }) {
  return (
    <span className="inline-flex items-center gap-1.5">
      <span aria-hidden className={cx("size-2 rounded-full", isAlive ? "bg-success" : "bg-failed")} />
      {word ?? (isAlive ? "alive" : "not alive")}
    </span>
  );
}

import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import { cx } from "./class-names.ts";

export interface Tab {
  readonly id: string;
  readonly label: string;
  readonly count?: number | string | undefined;
}

/** Tabs that are links: the selected one is part of the URL, as the search parameter `tab`. */
export function TabLinks({
  tabs,
  selected,
  label,
  children,
}: {
  readonly tabs: readonly Tab[];
  readonly selected: string;
  readonly label: string;
  /** At the right end of the bar. */
  readonly children?: ReactNode;
}) {
  const bar = useRef<HTMLElement>(null);
  const shown = tabs.map(({ count, label: name }) => `${name} ${count ?? ""}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: counts that arrive later move the tabs
  useEffect(() => {
    // On a narrow screen the bar scrolls; a link may select a tab outside of it.
    bar.current
      ?.querySelector(`[data-tab="${selected}"]`)
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected, shown]);
  return (
    <div className="flex items-center border-b border-line px-4">
      <nav ref={bar} aria-label={label} className="-mb-px flex min-w-0 overflow-x-auto">
        {tabs.map(({ id, label: name, count }) => (
          <Link
            key={id}
            to="."
            search={(before: Record<string, unknown>) => ({ ...before, tab: id })}
            data-tab={id}
            aria-current={id === selected ? "page" : undefined}
            className={cx(
              "flex h-9 items-center gap-1.5 border-b-2 px-2.5 whitespace-nowrap no-underline",
              id === selected
                ? "border-accent font-medium text-text"
                : "border-transparent text-muted hover:text-text",
            )}
          >
            {name}
            {count !== undefined && <span className="text-sm text-faint tabular-nums">{count}</span>}
          </Link>
        ))}
      </nav>
      {children !== undefined && <div className="ml-auto flex items-center gap-2 pl-2">{children}</div>}
    </div>
  );
}

/** A choice between views, as connected buttons. */
export function Segmented<Value extends string>({
  options,
  value,
  onChange,
  label,
}: {
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly value: Value;
  readonly onChange: (value: Value) => void;
  readonly label: string;
}) {
  return (
    <div
      role="radiogroup"
      aria-label={label}
      className="inline-flex rounded-md border border-line bg-raised p-0.5"
    >
      {options.map((option) => (
        // biome-ignore lint/a11y/useSemanticElements: a button of a group, as in every segmented control
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === value}
          onClick={() => onChange(option.value)}
          className={cx(
            "h-6 rounded-sm px-2.5",
            option.value === value ? "bg-surface font-medium shadow-sm" : "text-muted hover:text-text",
          )}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}

/** The frame of a page: title, facts, actions; content that scrolls; a pane of details at the right. */
import { type ReactNode, useEffect } from "react";
import { cx } from "./class-names.ts";

/** Sets the title of the document, and shows the heading of the page. */
export function PageHeader({
  title,
  heading,
  facts,
  actions,
}: {
  /** For the browser's tab and history. */
  readonly title: string;
  /** In place of the title. */
  readonly heading?: ReactNode;
  readonly facts?: ReactNode;
  readonly actions?: ReactNode;
}) {
  useDocumentTitle(title);
  return (
    <header className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 pt-3 pb-2">
      <div className="min-w-0 flex-[1_1_15rem]">
        <h1 className="flex flex-wrap items-center gap-x-3 gap-y-1 break-all">{heading ?? title}</h1>
        {facts !== undefined && (
          <div className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-muted">{facts}</div>
        )}
      </div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  );
}

/** For pages whose content needs no visible heading. */
export function PageTitle({ title }: { readonly title: string }) {
  useDocumentTitle(title);
  return <h1 className="sr-only">{title}</h1>;
}

function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Tradewind`;
  }, [title]);
}

/** A fact of a header: its name is quiet, its value is not. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <span className="inline-flex items-baseline gap-1.5 whitespace-nowrap">
      <span>{name}</span>
      <span className="text-text">{children}</span>
    </span>
  );
}

/** The content of a page, which scrolls, beside an optional pane. On narrow screens the pane lies over the content. */
export function PageBody({
  children,
  pane,
  className,
}: {
  readonly children: ReactNode;
  readonly pane?: ReactNode;
  readonly className?: string;
}) {
  return (
    <div className="relative flex min-h-0 flex-1">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <div tabIndex={0} className={cx("min-w-0 flex-1 overflow-auto outline-none", className)}>
        {children}
      </div>
      {pane}
    </div>
  );
}

/** Names and values, one pair per line. */
export function Facts({ rows }: { readonly rows: readonly (readonly [string, ReactNode] | null)[] }) {
  return (
    <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-4 gap-y-1">
      {rows
        .filter((row) => row !== null)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}

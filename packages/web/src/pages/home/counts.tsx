/** How many things fail, are late, run, wait: each links to the list behind its number. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { pagePath } from "../../app/paths.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { bounded, count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { cx } from "../../ui/class-names.ts";
import type { Home } from "./home.ts";

export function Counts({ home }: { readonly home: Home }) {
  const { counts, timeline } = home;
  const succeeded = timeline.slices.success.reduce((sum, each) => sum + each, 0);
  const failed = timeline.slices.failed.reduce((sum, each) => sum + each, 0);
  return (
    <div className="grid grid-cols-2 sm:grid-cols-3 lg:grid-cols-6">
      <CountLink
        page="dags"
        search={{ show: "failing" }}
        state="failed"
        name="Failing DAGs"
        value={count(counts.failing.dags)}
        isBad={counts.failing.dags > 0}
      >
        {counts.failing.latest && (
          <>
            latest <Ago at={counts.failing.latest} />
          </>
        )}
      </CountLink>
      <CountLink
        page="dags"
        search={{ show: "late" }}
        state="late"
        name="Late DAGs"
        value={count(counts.late.dags)}
      >
        {counts.late.oldest && (
          <>
            since <Ago at={counts.late.oldest} />
          </>
        )}
      </CountLink>
      <CountLink
        page="runs"
        search={{ state: "running" }}
        state="running"
        name="Running"
        value={bounded(counts.running)}
      >
        {counts.running.dags > 0 && `in ${count(counts.running.dags)} DAGs`}
      </CountLink>
      <CountLink
        page="waiting"
        search={{}}
        state="deferred"
        name="Waiting tasks"
        value={bounded(counts.waiting)}
      >
        {counts.waiting.oldest && (
          <>
            oldest <Ago at={counts.waiting.oldest} />
          </>
        )}
      </CountLink>
      <CountLink
        page="runs"
        search={{ state: "queued" }}
        state="queued"
        name="Queued runs"
        value={bounded(counts.queued)}
      >
        {counts.queued.oldest && (
          <>
            oldest <Ago at={counts.queued.oldest} />
          </>
        )}
      </CountLink>
      <CountLink
        page="runs"
        search={{ state: "success" }}
        state="success"
        name="Succeeded"
        value={count(succeeded)}
      >
        of {count(succeeded + failed)} runs
      </CountLink>
    </div>
  );
}

function CountLink({
  page,
  search,
  state,
  name,
  value,
  isBad = false,
  children,
}: {
  readonly page: string;
  readonly search: Readonly<Record<string, string>>;
  readonly state: string;
  readonly name: string;
  readonly value: string;
  readonly isBad?: boolean;
  readonly children?: ReactNode;
}) {
  return (
    <Link
      to={pagePath(page)}
      search={search}
      className="-mt-px -ml-px flex h-16 min-w-0 flex-col justify-center border-t border-l border-line px-3 no-underline hover:bg-hover"
    >
      <span className="flex items-center gap-1.5 text-sm text-muted">
        <StateGlyph state={state} size={14} />
        {name}
      </span>
      <span className="flex items-baseline gap-2">
        <span className={cx("text-[24px] leading-7 font-semibold tracking-tight", isBad && "text-danger")}>
          {value}
        </span>
        <span className="truncate text-sm text-muted">{children}</span>
      </span>
    </Link>
  );
}

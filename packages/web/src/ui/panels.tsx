/** What a page shows instead of its content: while it loads, when there is nothing, when something failed. */
import type { ReactNode } from "react";
import { ApiProblem, messageOf } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { Copyable } from "./copy.tsx";

/** For the first load only: later loads keep what is known. */
export function Loading({ label = "Loading" }: { readonly label?: string }) {
  return (
    <div role="status" className="animate-[fade_0.3s_0.3s_both] p-6 text-muted">
      {label}…
    </div>
  );
}

/** Explains what the page will show, and how to make the first one appear. */
export function Empty({
  title,
  children,
  command,
}: {
  readonly title: string;
  readonly children?: ReactNode;
  readonly command?: string;
}) {
  return (
    <div className="flex max-w-xl flex-col gap-2 p-6">
      <p className="font-semibold">{title}</p>
      {children !== undefined && <div className="text-muted">{children}</div>}
      {command !== undefined && <Copyable text={command} />}
    </div>
  );
}

export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const problem = error instanceof ApiProblem ? error : null;
  return (
    <div
      role="alert"
      className="m-4 flex max-w-2xl flex-col items-start gap-2 rounded-md border border-line bg-danger-soft p-3"
    >
      <p className="font-semibold">
        {problem === null
          ? "This page could not be loaded"
          : problem.status === 404
            ? "Not found"
            : problem.status === 403
              ? "You may not see this"
              : "The server rejected the request"}
      </p>
      <p className="break-words">{messageOf(error)}</p>
      {problem?.status === 404 && <p>It may have been deleted or renamed. Ctrl K searches for it.</p>}
      {problem?.status === 403 && <p>Sign in with a token of another role, or ask an administrator.</p>}
      {problem !== null && <code className="text-muted">{problem.code}</code>}
      {onRetry !== undefined && problem?.status !== 404 && <Button onClick={onRetry}>Load again</Button>}
    </div>
  );
}

/** Above data that is shown although its last reload failed. */
export function Stale({ error }: { readonly error: unknown }) {
  return (
    <p role="status" className="border-b border-line bg-warn-soft px-4 py-1.5">
      This may be out of date: {messageOf(error)}
    </p>
  );
}

interface Loaded<Data> {
  readonly data: Data | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** Shows the data of a query; keeps it, marked as stale, if a later load fails. */
export function Loads<Data>({
  query,
  children,
}: {
  readonly query: Loaded<Data>;
  readonly children: (data: Data) => ReactNode;
}) {
  const { data, error } = query;
  if (data !== undefined)
    return (
      <>
        {error !== null && error !== undefined && <Stale error={error} />}
        {children(data)}
      </>
    );
  if (error !== null && error !== undefined)
    return <Failure error={error} onRetry={() => void query.refetch()} />;
  return <Loading />;
}

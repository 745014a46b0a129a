/** Beside the log of a failed task: the error, where it was thrown, and what can be done. */

import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { $api } from "../../api/client.ts";
import type { LogModel } from "../../log/log-model.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { dedented, type Frame, firstUserFrame, splitReason } from "./error-text.ts";
import { SameError } from "./same-error.tsx";
import type { TaskAddress, Try } from "./task-data.ts";

/** Lines at the end of a log in which the stack of its error is looked for. */
const STACK_LINES = 60;

export function FailurePane({
  address,
  attempt,
  isFailed,
  model,
  onClear,
  onMark,
}: {
  readonly address: TaskAddress;
  readonly attempt: Try;
  /** Of the task, of which this may be an earlier try. */
  readonly isFailed: boolean;
  readonly model: LogModel;
  readonly onClear: (latestVersion: boolean) => void;
  readonly onMark: (state: "success" | "skipped") => void;
}) {
  const frame = useFrame(model);
  const error = splitReason(attempt.reason ?? "");
  return (
    <div className="flex flex-col">
      <Part title={isFailed ? "Why it failed" : "Why this try failed"} aside={<WhyLink />}>
        {error.name !== null && <code className="text-danger">{error.name}</code>}
        <p className="break-words">{error.message || "No reason was recorded."}</p>
        {frame !== null && (
          <p className="flex items-center gap-1 text-sm text-muted">
            <code className="min-w-0 truncate">
              {frame.file}:{frame.line}
            </code>
            {frame.name !== null && <span className="truncate">in {frame.name}</span>}
            <CopyButton text={`${frame.file}:${frame.line}`} label="Copy the place" />
          </p>
        )}
      </Part>
      {frame !== null && (
        <SourceFrame address={address} frame={frame} version={attempt.dag_version?.version_number} />
      )}
      <SameError address={address} tryNumber={attempt.try_number} />
      {isFailed && <Choices onClear={onClear} onMark={onMark} />}
    </div>
  );
}

function Choices({
  onClear,
  onMark,
}: {
  readonly onClear: (latestVersion: boolean) => void;
  readonly onMark: (state: "success" | "skipped") => void;
}) {
  return (
    <Part title="What you can do">
      <Choice
        title="Run again"
        hint="This task and those after it"
        action={
          <Button kind="primary" onClick={() => onClear(false)}>
            Clear…
          </Button>
        }
      />
      <Choice
        title="Run again after a fix"
        hint="On the current version of the DAG"
        action={<Button onClick={() => onClear(true)}>Clear on current…</Button>}
      />
      <Choice
        title="Go on without it"
        hint="Tasks after it follow their rules"
        action={<Button onClick={() => onMark("skipped")}>Skip…</Button>}
      />
      <Choice
        title="The work is done already"
        hint="Counts as succeeded, without output"
        action={<Button onClick={() => onMark("success")}>Mark success…</Button>}
      />
    </Part>
  );
}

function WhyLink() {
  return (
    <Link to="." search={(before: Record<string, unknown>) => ({ ...before, tab: "why" })} className="link">
      Full chain
    </Link>
  );
}

function Part({
  title,
  aside,
  children,
}: {
  readonly title: string;
  readonly aside?: React.ReactNode;
  readonly children: React.ReactNode;
}) {
  return (
    <section className="flex flex-col gap-1.5 border-b border-line px-4 py-3 last:border-b-0">
      <h3 className="flex items-center justify-between gap-2">
        {title}
        <span className="font-normal">{aside}</span>
      </h3>
      {children}
    </section>
  );
}

function Choice({
  title,
  hint,
  action,
}: {
  readonly title: string;
  readonly hint: string;
  readonly action: React.ReactNode;
}) {
  return (
    <div className="flex items-center justify-between gap-3 border-b border-line py-1.5 last:border-b-0">
      <div className="min-w-0">
        <p>{title}</p>
        <p className="text-sm text-muted">{hint}</p>
      </div>
      {action}
    </div>
  );
}

/** The lines around the place of the error, if it is in the file of the DAG. */
function SourceFrame({
  address,
  frame,
  version,
}: {
  readonly address: TaskAddress;
  readonly frame: Frame;
  readonly version: number | undefined;
}) {
  const dag = $api.useQuery("get", "/api/v2/dags/{dag_id}", {
    params: { path: { dag_id: address.dagId } },
  });
  const source = $api.useQuery("get", "/api/v2/dagSources/{dag_id}", {
    params: {
      path: { dag_id: address.dagId },
      query: version === undefined ? {} : { version_number: version },
    },
  });
  const isOwn = dag.data?.fileloc?.split("/").at(-1) === frame.file.split("/").at(-1);
  const lines = source.data?.content?.split("\n");
  if (!isOwn || lines === undefined || lines[frame.line - 1] === undefined) return null;
  const from = Math.max(0, frame.line - 3);
  return (
    <pre
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard
      tabIndex={0}
      className="overflow-x-auto border-b border-line bg-raised py-1.5 leading-5"
    >
      {dedented(lines.slice(from, frame.line + 2)).map((line, at) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text have no other key
          key={at}
          className={`w-max min-w-full pr-4 ${from + at + 1 === frame.line ? "bg-danger-soft" : ""}`}
        >
          <span className="inline-block w-12 pr-3 text-right text-faint select-none">{from + at + 1}</span>
          {line}
        </div>
      ))}
    </pre>
  );
}

function useFrame(model: LogModel): Frame | null {
  const [frame, setFrame] = useState<Frame | null>(null);
  useEffect(() => {
    let isGone = false;
    const look = async () => {
      const texts: string[] = [];
      for await (const part of model.range(Math.max(0, model.lines - STACK_LINES), model.lines))
        texts.push(...part.map(({ message }) => message));
      if (!isGone) setFrame(firstUserFrame(texts.join("\n")));
    };
    const start = () => {
      if (!model.isIndexed || !model.isOver) return;
      stop();
      look().catch(() => {});
    };
    const stop = model.subscribe(start);
    start();
    return () => {
      isGone = true;
      stop();
    };
  }, [model]);
  return frame;
}

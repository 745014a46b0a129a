/** A change in three steps: what it would do by the server's dry run, the button that says so, and a toast afterwards. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { toast } from "sonner";
import { BASE, queryClient } from "../api/client.ts";
import { messageOf } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { copyText } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { Failure, Loading } from "../ui/panels.tsx";
import { sendAll } from "./api-call.ts";
import { curlOf, type Request } from "./command-text.ts";

export interface Undo {
  readonly run: () => Promise<unknown>;
  /** What is so again: "1 run is failed again". */
  readonly done: string;
}

/** `Item` is what changes: a task instance, a run, a DAG. */
export interface ActionPlan<Item> {
  /** Reads what would change. */
  readonly preview: (signal: AbortSignal) => Promise<readonly Item[]>;
  /** Two plans with the same key have the same preview. */
  readonly previewKey: unknown;
  readonly calls: (items: readonly Item[]) => readonly Request[];
  readonly cli: (items: readonly Item[]) => readonly string[];
  /** "Clear 14 tasks". */
  readonly label: (items: readonly Item[]) => string;
  readonly done: (items: readonly Item[]) => string;
  /** Takes the change back, if that is possible. @throws If something has happened since. */
  readonly undo?: (items: readonly Item[]) => Undo | null;
  /** The request is not offered as curl. */
  readonly hasSecrets?: boolean;
  /** The change makes sense although nothing is listed. */
  readonly mayBeEmpty?: boolean;
}

export function ActionDialog<Item>({
  title,
  plan,
  show,
  options,
  explanation,
  emptyText,
  danger = false,
  onClose,
}: {
  readonly title: string;
  readonly plan: ActionPlan<Item>;
  /** The list of what would change. */
  readonly show: (items: readonly Item[]) => ReactNode;
  readonly options?: ReactNode;
  readonly explanation?: ReactNode;
  readonly emptyText: string;
  readonly danger?: boolean;
  readonly onClose: () => void;
}) {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const preview = useQuery({
    queryKey: ["preview", plan.previewKey],
    queryFn: ({ signal }) => plan.preview(signal),
    staleTime: 0,
    gcTime: 0,
    placeholderData: keepPreviousData,
  });
  const items = preview.data ?? [];
  const confirm = async () => {
    setSending(true);
    setProblem(null);
    try {
      await sendAll(calls);
      onClose();
      const undo = plan.undo?.(items) ?? null;
      toast.success(
        plan.done(items),
        undo === null ? {} : { action: { label: "Undo", onClick: () => void takeBack(undo) } },
      );
    } catch (error) {
      setProblem(error);
    }
    setSending(false);
    void queryClient.invalidateQueries();
  };
  const calls = preview.data === undefined ? [] : plan.calls(items);
  const isEmpty = calls.length === 0 || (items.length === 0 && plan.mayBeEmpty !== true);
  return (
    <Dialog
      open
      onOpenChange={onClose}
      wide
      title={title}
      footer={
        <>
          <CopyCommands cli={plan.cli(items)} calls={plan.hasSecrets ? [] : calls} />
          <Button onClick={onClose}>Close</Button>
          <Button
            kind={danger ? "danger" : "primary"}
            disabled={preview.isPlaceholderData || isEmpty || isSending}
            onClick={() => void confirm()}
          >
            {preview.data === undefined ? "…" : plan.label(items)}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        {explanation !== undefined && <p className="text-muted">{explanation}</p>}
        {options !== undefined && <div className="flex flex-wrap gap-x-5 gap-y-2">{options}</div>}
        {problem !== null && (
          <p role="alert" className="rounded-md bg-danger-soft p-2">
            {messageOf(problem)}
          </p>
        )}
        {preview.error !== null ? (
          <Failure error={preview.error} onRetry={() => void preview.refetch()} />
        ) : preview.data === undefined ? (
          <Loading label="Asking the server what would change" />
        ) : items.length === 0 ? (
          <p className="text-muted">{emptyText}</p>
        ) : (
          <div className={preview.isPlaceholderData ? "opacity-60" : ""}>{show(items)}</div>
        )}
      </div>
    </Dialog>
  );
}

async function takeBack({ run, done }: Undo): Promise<void> {
  try {
    await run();
    toast.success(`Undone: ${done}`);
  } catch (error) {
    toast.error(messageOf(error));
  }
  void queryClient.invalidateQueries();
}

function CopyCommands({
  cli,
  calls,
}: {
  readonly cli: readonly string[];
  readonly calls: readonly Request[];
}) {
  const origin = location.origin + BASE.replace(/\/$/, "");
  const copy = async (text: string, what: string) => {
    await copyText(text);
    toast.success(`Copied as ${what}`);
  };
  return (
    <span className="mr-auto">
      <Menu
        align="start"
        trigger={
          <Button kind="quiet" disabled={calls.length === 0 && cli.length === 0}>
            Copy as…
          </Button>
        }
      >
        {cli.length > 0 && (
          <MenuItem onSelect={() => void copy(cli.join("\n"), "a CLI command")}>Copy as CLI</MenuItem>
        )}
        {calls.length > 0 && (
          <MenuItem onSelect={() => void copy(calls.map((call) => curlOf(call, origin)).join("\n"), "curl")}>
            Copy as curl
          </MenuItem>
        )}
      </Menu>
    </span>
  );
}

export function Option({
  checked,
  onChange,
  children,
}: {
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly children: ReactNode;
}) {
  return (
    <label className="flex items-center gap-2">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      {children}
    </label>
  );
}

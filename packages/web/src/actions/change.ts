/** Changes through the API: one message for success and failure, and the lists that show the change are read again. */
import { toast } from "sonner";
import { queryClient } from "../api/client.ts";
import { messageOf } from "../api/problem.ts";

export interface Change {
  readonly run: () => Promise<unknown>;
  /** What has been done: "Pool gpu has 4 slots". */
  readonly done: string;
  /** Paths of the API whose answers may differ now. */
  readonly reload: readonly string[];
  /** Reverts the change; offered in the message. */
  readonly undo?: () => Promise<unknown>;
}

/** Returns whether it succeeded; a failure has been shown. */
export async function change({ run, done, reload, undo }: Change): Promise<boolean> {
  try {
    await run();
  } catch (error) {
    toast.error(messageOf(error));
    return false;
  }
  toast.success(
    done,
    undo && {
      action: {
        label: "Undo",
        onClick: () => void change({ run: undo, done: "Undone", reload }),
      },
    },
  );
  await reloadPaths(reload);
  return true;
}

export async function reloadPaths(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => queryClient.invalidateQueries({ queryKey: ["get", path] })));
}

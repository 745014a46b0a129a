/** Changes through the API: one message for success and failure, and the lists that show the change are read again. */
import { toast } from "sonner";
import { queryClient } from "../api/client.ts";
import { messageOf } from "../api/problem.ts";
import { send } from "./api-call.ts";
import type { Request } from "./command-text.ts";

export interface Change {
  readonly request: Request;
  /** What has been done: "Pool gpu has 4 slots". */
  readonly done: string;
  /** Paths of the API whose answers may differ now. */
  readonly reload: readonly string[];
  /** Reverts the change; offered in the message. */
  readonly undo?: Request | null;
}

/** The server's answer; null after a failure, which has been shown. */
export async function change<Answer = unknown>({
  request,
  done,
  reload,
  undo = null,
}: Change): Promise<{ readonly answer: Answer } | null> {
  let answer: Answer;
  try {
    answer = await send<Answer>(request);
  } catch (error) {
    toast.error(messageOf(error));
    return null;
  }
  toast.success(
    done,
    undo === null
      ? {}
      : {
          action: {
            label: "Undo",
            onClick: () => void change({ request: undo, done: `Undone: ${done}`, reload }),
          },
        },
  );
  await reloadPaths(reload);
  return { answer };
}

export async function reloadPaths(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => queryClient.invalidateQueries({ queryKey: ["get", path] })));
}

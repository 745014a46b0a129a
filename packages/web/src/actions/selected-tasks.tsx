import { useState } from "react";
import { count } from "../time/format.ts";
import { Button } from "../ui/button.tsx";
import type { TaskRef } from "./commands.ts";
import { ClearTasks, MarkTasks } from "./task-actions.tsx";

/** What can be done with the selected rows of a list of task instances; nothing while none is selected. */
export function SelectedTasks({ tasks }: { readonly tasks: readonly TaskRef[] }) {
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  if (tasks.length === 0) return null;
  return (
    <span className="ml-auto flex items-center gap-2">
      <Button onClick={() => setDialog("clear")}>Clear {count(tasks.length)}…</Button>
      <Button onClick={() => setDialog("mark")}>Mark {count(tasks.length)} as…</Button>
      {dialog === "clear" && <ClearTasks tasks={tasks} onClose={() => setDialog(null)} />}
      {dialog === "mark" && <MarkTasks tasks={tasks} onClose={() => setDialog(null)} />}
    </span>
  );
}

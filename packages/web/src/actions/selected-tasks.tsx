import { useState } from "react";
import { Button } from "../ui/button.tsx";
import type { TaskRef } from "./commands.ts";
import { ClearTasks, MarkTasks } from "./task-actions.tsx";

/** What can be done with the selected rows of a list of task instances. */
export function SelectedTasks({ tasks }: { readonly tasks: readonly TaskRef[] }) {
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  return (
    <>
      <Button onClick={() => setDialog("clear")}>Clear…</Button>
      <Button onClick={() => setDialog("mark")}>Mark as…</Button>
      {dialog === "clear" && <ClearTasks tasks={tasks} onClose={() => setDialog(null)} />}
      {dialog === "mark" && <MarkTasks tasks={tasks} onClose={() => setDialog(null)} />}
    </>
  );
}

/** Which rows a grid has: tasks and their groups as a tree, without what is inside collapsed groups. Pure. */
import { parentsOf, pathOf, shortName } from "../graph/group-paths.ts";
import type { GridGroup, GridTask } from "./grid-model.ts";

export type GridRow = TaskRow | GroupRow;

interface TaskRow {
  readonly kind: "task";
  readonly id: string;
  readonly label: string;
  readonly depth: number;
  /** In the columns. */
  readonly place: number;
  readonly isMapped: boolean;
  readonly isRemoved: boolean;
}

interface GroupRow {
  readonly kind: "group";
  readonly id: string;
  readonly label: string;
  readonly depth: number;
  readonly isOpen: boolean;
  /** Of all tasks inside of it. */
  readonly places: readonly number[];
}

interface Tree {
  readonly tasks: readonly GridTask[];
  readonly groups: readonly GridGroup[];
  readonly removed: readonly string[];
}

export interface RowFilter {
  readonly collapsed: ReadonlySet<string>;
  /** Only tasks whose id contains it; groups are then open. */
  readonly text: string;
}

export function gridRows({ groups, removed, tasks }: Tree, { collapsed, text }: RowFilter): GridRow[] {
  const parents = parentsOf(groups);
  const wanted = text.trim().toLowerCase();
  const matches = (taskId: string) => taskId.toLowerCase().includes(wanted);
  const isOpen = (group: string) => wanted !== "" || !collapsed.has(group);
  const rows: GridRow[] = [];
  const places = new Map<string, number[]>();
  for (const [place, task] of tasks.entries()) {
    if (!matches(task.task_id)) continue;
    const path = pathOf(task.group, parents);
    let isVisible = true;
    for (const [depth, group] of path.entries()) {
      const known = places.get(group);
      if (known === undefined) {
        const inside = [place];
        places.set(group, inside);
        if (isVisible)
          rows.push({
            kind: "group",
            id: group,
            label: shortName(group, path[depth - 1] ?? null),
            depth,
            isOpen: isOpen(group),
            places: inside,
          });
      } else known.push(place);
      isVisible &&= isOpen(group);
    }
    if (isVisible)
      rows.push({
        kind: "task",
        id: task.task_id,
        label: shortName(task.task_id, task.group),
        depth: path.length,
        place,
        isMapped: task.is_mapped,
        isRemoved: false,
      });
  }
  for (const [index, taskId] of removed.entries())
    if (matches(taskId))
      rows.push({
        kind: "task",
        id: taskId,
        label: taskId,
        depth: 0,
        place: tasks.length + index,
        isMapped: false,
        isRemoved: true,
      });
  return rows;
}

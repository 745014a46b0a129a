/** Groups of tasks and their names. Pure. */

export type GroupParents = ReadonlyMap<string, string | null>;

export function parentsOf(
  groups: readonly { readonly group_id: string; readonly parent: string | null }[],
): GroupParents {
  return new Map(groups.map(({ group_id, parent }) => [group_id, parent]));
}

/** The groups around a task, the outermost first, and the given one last. */
export function pathOf(group: string | null, parents: GroupParents): string[] {
  const path: string[] = [];
  for (let at: string | null = group; at !== null; at = parents.get(at) ?? null) path.unshift(at);
  return path;
}

/** Without the id of the group, which begins the ids of what is in it. */
export function shortName(id: string, group: string | null): string {
  return group !== null && id.startsWith(`${group}.`) ? id.slice(group.length + 1) : id;
}

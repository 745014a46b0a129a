import type { Draft } from "./draft.ts";

/** The last tasks of a setup's scope so far: tasks downstream of the setup without a downstream task in the scope. */
export function lastOfScope(draft: Draft, setup: string): string[] {
  const downstream = draft.downstream();
  const scope = new Set<string>();
  const open = [setup];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const next of downstream.get(id) ?? []) {
      if (scope.has(next) || draft.tasks.get(next)!.role === "teardown") continue;
      scope.add(next);
      open.push(next);
    }
  }
  return [...scope].filter((id) => !(downstream.get(id) ?? []).some((next) => scope.has(next)));
}

import fc from "fast-check";
import { expect, test } from "vitest";
import { type Candidate, type Capacities, ReadyQueue } from "./admission.ts";

/**
 * A scheduler's life in short: tasks arrive, are taken back, are admitted, end; pools and limits change their size.
 * At every admission the queue has to pick exactly what one pass over all waiting tasks in order would pick.
 */
const POOLS = ["a", "b", "c"];
const LIMITS = ["run", "task", "executor"];

const candidate: fc.Arbitrary<Candidate> = fc.record({
  weight: fc.integer({ min: 0, max: 3 }),
  logicalDate: fc.option(fc.integer({ min: 0, max: 2 })),
  mapIndex: fc.integer({ min: -1, max: 1 }),
  pool: fc.constantFrom(...POOLS, "unknown"),
  slots: fc.integer({ min: 1, max: 4 }),
  limits: fc.subarray([...LIMITS, "unlimited"]),
});
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("add" as const), task: candidate }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      most: fc.option(fc.integer({ min: 1, max: 3 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("resize" as const),
      name: fc.constantFrom(...POOLS, ...LIMITS),
      slots: fc.integer({ min: -1, max: 6 }),
    }),
  },
);

test("picks what a pass over all waiting tasks would pick, and never too much", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
      const queue = new ReadyQueue<Candidate>();
      const sizes = new Map<string, number>([...POOLS, ...LIMITS].map((name) => [name, 3]));
      let waiting: Candidate[] = [];
      let active: Candidate[] = [];
      const occupied = (name: string) =>
        active.reduce(
          (sum, task) => sum + (task.pool === name ? task.slots : 0) + (task.limits.includes(name) ? 1 : 0),
          0,
        );
      const capacities: Capacities = (name) => {
        const slots = sizes.get(name);
        return slots === undefined ? undefined : { slots, occupied: occupied(name) };
      };
      for (const move of steps) {
        if (move.do === "add") {
          const task = { ...move.task };
          queue.add(task);
          waiting.push(task);
        } else if (move.do === "remove" && waiting.length > 0) {
          const task = waiting[move.which % waiting.length]!;
          expect(queue.remove(task)).toBe(true);
          waiting = waiting.filter((other) => other !== task);
        } else if (move.do === "end" && active.length > 0) {
          const task = active[move.which % active.length]!;
          active = active.filter((other) => other !== task);
          for (const limit of task.limits) queue.release(limit);
        } else if (move.do === "resize") {
          sizes.set(move.name, move.slots);
          queue.release(move.name);
        } else if (move.do === "take") {
          const most = move.most ?? Number.POSITIVE_INFINITY;
          const expected = onePass(waiting, capacities, most);
          const picks = queue.take(capacities, most);
          expect(picks).toEqual(expected);
          for (const name of sizes.keys()) {
            const [slots, before] = [sizes.get(name)!, occupied(name)];
            const taken = picks.reduce(
              (sum, t) => sum + (t.pool === name ? t.slots : 0) + (t.limits.includes(name) ? 1 : 0),
              0,
            );
            if (slots >= 0 && taken > 0) expect(before + taken).toBeLessThanOrEqual(slots);
          }
          waiting = waiting.filter((task) => !picks.includes(task));
          active = [...active, ...picks];
        }
        expect(queue.size).toBe(waiting.length);
      }
    }),
    { numRuns: 1_500 },
  );
});

function onePass(waiting: readonly Candidate[], capacities: Capacities, most: number): Candidate[] {
  const left = new Map<string, number>();
  const room = (name: string, kind: "pool" | "limit") => {
    const view = capacities(name, kind);
    if (!view) return kind === "pool" ? -1 : 1_000;
    return left.get(name) ?? (view.slots < 0 ? 1_000 : view.slots - view.occupied);
  };
  const blocked = new Set<string>();
  const picks: Candidate[] = [];
  const date = (task: Candidate) => task.logicalDate ?? 1_000;
  const inOrder = [...waiting].sort(
    (x, y) => y.weight - x.weight || date(x) - date(y) || x.mapIndex - y.mapIndex || x.arrival! - y.arrival!,
  );
  for (const task of inOrder) {
    if (picks.length === most) break;
    const size = capacities(task.pool, "pool")?.slots ?? -1;
    if (size >= 0 && task.slots > size) continue;
    if (task.limits.some((limit) => room(limit, "limit") < 1)) continue;
    if (room(task.pool, "pool") < task.slots) blocked.add(task.pool);
    if (blocked.has(task.pool)) continue;
    left.set(task.pool, room(task.pool, "pool") - task.slots);
    for (const limit of task.limits) left.set(limit, room(limit, "limit") - 1);
    picks.push(task);
  }
  return picks;
}

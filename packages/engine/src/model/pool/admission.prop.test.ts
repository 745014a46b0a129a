import fc from "fast-check";
import { expect, test } from "vitest";
import { type Candidate, type Capacities, ReadyQueue } from "./admission.ts";

/**
 * A short life of a scheduler: tasks arrive, are removed, are admitted and end; pools and limits change their size. Each
 * admission has to pick exactly the tasks that one pass over all waiting tasks in order would pick.
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

test("picks the tasks that a pass over all waiting tasks would pick, and never exceeds a capacity", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
      const queue = new ReadyQueue<Candidate>();
      const sizes = new Map<string, number>([...POOLS, ...LIMITS].map((name) => [name, 3]));
      /** Slots given to tasks behind a task that did not fit, as counted by the reference. */
      const passed = new Map<Candidate, number>();
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
          const expected = onePass(waiting, { capacities, most, passed });
          const picks = queue.admit(capacities, most);
          expect(picks).toEqual(expected);
          if (move.most === null) {
            const left = leftAfter(picks, capacities);
            const still = waiting.filter((task) => !picks.includes(task));
            expect(outOfTurn(picks, still, left)).toEqual([]);
            expect(heldInVain(still, { left, capacities, passed })).toEqual([]);
          }
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

type Left = (name: string, kind: "pool" | "limit") => number;

const date = (task: Candidate) => task.logicalDate ?? 1_000;
const order = (x: Candidate, y: Candidate) =>
  y.weight - x.weight || date(x) - date(y) || x.mapIndex - y.mapIndex || x.arrival! - y.arrival!;

function leftAfter(picks: readonly Candidate[], capacities: Capacities): Left {
  return (name, kind) => {
    const view = capacities(name, kind);
    if (!view) return kind === "pool" ? -1 : 1_000;
    if (view.slots < 0) return 1_000;
    const taken = picks.reduce(
      (sum, task) =>
        sum + (kind === "pool" ? (task.pool === name ? task.slots : 0) : task.limits.includes(name) ? 1 : 0),
      0,
    );
    return view.slots - view.occupied - taken;
  };
}

/** Strict priority: picks before a better task of the same pool and width that no limit blocks. */
function outOfTurn(picks: readonly Candidate[], still: readonly Candidate[], left: Left): Candidate[][] {
  return picks.flatMap((pick) =>
    still
      .filter(({ pool, slots }) => pool === pick.pool && slots === pick.slots)
      .filter((task) => order(task, pick) < 0 && task.limits.every((limit) => left(limit, "limit") >= 1))
      .map((task) => [pick, task]),
  );
}

/** No slot stays free without need: tasks that could run, while no task before them has reached its overtaking limit. */
function heldInVain(
  still: readonly Candidate[],
  world: { left: Left; capacities: Capacities; passed: ReadonlyMap<Candidate, number> },
): Candidate[] {
  const { capacities, left, passed } = world;
  const isFree = (task: Candidate) => task.limits.every((limit) => left(limit, "limit") >= 1);
  return still.filter((task) => {
    const size = capacities(task.pool, "pool")?.slots ?? -1;
    if (size < 0 ? !capacities(task.pool, "pool") : task.slots > size) return false;
    if (!isFree(task) || left(task.pool, "pool") < task.slots) return false;
    return !still.some(
      (other) =>
        other.pool === task.pool && order(other, task) < 0 && (passed.get(other) ?? 0) + task.slots > size,
    );
  });
}

function onePass(
  waiting: readonly Candidate[],
  world: { capacities: Capacities; most: number; passed: Map<Candidate, number> },
): Candidate[] {
  const { capacities, most, passed } = world;
  const picks: Candidate[] = [];
  const stuck: Candidate[] = [];
  for (const task of [...waiting].sort(order)) {
    if (picks.length === most) break;
    const left = leftAfter(picks, capacities);
    const size = capacities(task.pool, "pool")?.slots ?? -1;
    if (size >= 0 && task.slots > size) continue;
    if (task.limits.some((limit) => left(limit, "limit") < 1)) continue;
    const before = stuck.filter(({ pool }) => pool === task.pool);
    if (left(task.pool, "pool") < task.slots) {
      // Tasks of one width wait behind each other: only the first of them is overtaken.
      if (!before.some(({ slots }) => slots === task.slots)) stuck.push(task);
      continue;
    }
    if (size >= 0 && before.some((other) => (passed.get(other) ?? 0) + task.slots > size)) continue;
    for (const other of before) passed.set(other, (passed.get(other) ?? 0) + task.slots);
    picks.push(task);
  }
  return picks;
}

test("a task that does not fit is overtaken by at most one pool's worth of slots, and then starts", () => {
  const life = fc.record({
    size: fc.integer({ min: 2, max: 6 }),
    width: fc.integer({ min: 2, max: 6 }),
    // Durations of the tasks that run before it and that keep arriving behind it.
    durations: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 40, maxLength: 40 }),
  });
  fc.assert(
    fc.property(life, ({ size, width, durations }) => {
      const queue = new ReadyQueue<Candidate>();
      const make = (weight: number, slots: number): Candidate => {
        return { weight, logicalDate: 0, mapIndex: -1, pool: "a", slots, limits: [] };
      };
      const wide = make(9, Math.min(width, size));
      const running: { until: number; slots: number }[] = [{ until: 3, slots: size }];
      queue.add(wide);
      let [now, behind] = [0, 0];
      for (; !running.some(({ until }) => until === Number.POSITIVE_INFINITY); now++) {
        expect(now).toBeLessThan(40);
        queue.add(make(1, 1));
        queue.add(make(1, 1));
        for (let i = running.length - 1; i >= 0; i--) if (running[i]!.until <= now) running.splice(i, 1);
        const occupied = running.reduce((sum, { slots }) => sum + slots, 0);
        for (const task of queue.admit(() => ({ slots: size, occupied }))) {
          if (task !== wide) behind++;
          const until = task === wide ? Number.POSITIVE_INFINITY : now + durations[now % durations.length]!;
          running.push({ until, slots: task.slots });
        }
      }
      // In the round in which it starts, other tasks may take the slots it leaves free.
      expect(behind).toBeLessThanOrEqual(2 * size - wide.slots);
    }),
  );
});

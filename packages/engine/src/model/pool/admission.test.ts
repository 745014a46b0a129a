import { expect, test } from "vitest";
import { type Candidate, type Capacity, ReadyQueue } from "./admission.ts";

interface Task extends Candidate {
  readonly name: string;
}

function task(name: string, facts: Partial<Candidate> = {}): Task {
  return { name, weight: 1, logicalDate: 0, mapIndex: -1, pool: "p", slots: 1, limits: [], ...facts };
}

function queueOf(...tasks: Task[]): ReadyQueue<Task> {
  const queue = new ReadyQueue<Task>();
  for (const one of tasks) queue.add(one);
  return queue;
}

/** Capacities by name: [slots, occupied]. */
const views =
  (known: Record<string, readonly [number, number]>) =>
  (name: string): Capacity | undefined => {
    const view = known[name];
    return view && { slots: view[0], occupied: view[1] };
  };
const names = (tasks: readonly Task[]) => tasks.map((one) => one.name).join(" ");

test("orders by weight, logical date, map index and arrival; tasks without a date come last", () => {
  const queue = queueOf(
    task("undated", { weight: 2, logicalDate: null }),
    task("second", { weight: 2, logicalDate: 5, mapIndex: 1 }),
    task("light"),
    task("first", { weight: 2, logicalDate: 5, mapIndex: 0 }),
    task("later", { weight: 2, logicalDate: 6, mapIndex: 0 }),
    task("light2"),
    task("heavy", { weight: 9, logicalDate: 99 }),
  );
  expect(names(queue.admit(views({ p: [-1, 0] })))).toBe("heavy first second later undated light light2");
  expect(queue.size).toBe(0);
});

test("never fills a pool beyond its slots; the other tasks keep their turn", () => {
  const queue = queueOf(task("a"), task("b"), task("c"));
  expect(names(queue.admit(views({ p: [5, 3] })))).toBe("a b");
  expect([...queue.heads()].map(({ task: { name }, waiting }) => `${name} ${waiting}`)).toEqual(["c 1"]);
  expect(names(queue.admit(views({ p: [5, 5] })))).toBe("");
  expect(names(queue.admit(views({ p: [5, 4] })))).toBe("c");
});

test("admits no task to an overfull or unknown pool", () => {
  const queue = queueOf(task("a"), task("b", { pool: "gone" }));
  expect(names(queue.admit(views({ p: [2, 7] })))).toBe("");
  expect(names(queue.admit(views({ p: [2, 0], gone: [1, 0] })))).toBe("a b");
});

test("does not delay one pool because another is full", () => {
  const queue = queueOf(task("a", { weight: 9 }), task("b", { pool: "q" }));
  expect(names(queue.admit(views({ p: [1, 1], q: [1, 0] })))).toBe("b");
});

test("lets narrower tasks overtake a wide one for one pool's worth of slots, then holds the pool", () => {
  const wide = task("wide", { weight: 9, slots: 3 });
  const queue = queueOf(wide, task("other", { pool: "q" }), task("better", { weight: 10 }));
  for (let n = 1; n <= 6; n++) queue.add(task(`n${n}`));
  expect(names(queue.admit(views({ p: [4, 2], q: [1, 0] })))).toBe("better other n1");
  expect(wide.overtaken).toBe(1);
  expect([...queue.heads()].map(({ task: { name }, waiting }) => `${name} ${waiting}`)).toEqual([
    "wide 1",
    "n2 5",
  ]);
  expect(names(queue.admit(views({ p: [4, 2], q: [1, 1] })))).toBe("n2 n3");
  expect(names(queue.admit(views({ p: [4, 2] })))).toBe("n4");
  expect(names(queue.admit(views({ p: [4, 2] })))).toBe("");
  queue.add(task("late", { weight: 10 }));
  expect(names(queue.admit(views({ p: [4, 2] })))).toBe("late");
  expect(names(queue.admit(views({ p: [4, 1] })))).toBe("wide");
  expect(names(queue.admit(views({ p: [4, 3] })))).toBe("n5");
});

test("reserves room for the tasks of a stand-in as far as it goes, and does not count it as overtaking", () => {
  const wide = task("wide", { weight: 9, slots: 4 });
  const queue = queueOf(wide, task("guest", { weight: 5, standsFor: 2 }), task("a"), task("b"));
  expect(names(queue.admit(views({ p: [5, 2] })))).toBe("guest a");
  expect(wide.overtaken).toBe(1);
  queue.add(task("many", { weight: 5, standsFor: 9 }));
  expect(names(queue.admit(views({ p: [5, 3] })))).toBe("many");
});

test("lets a narrower task use the limit that a waiting wide task leaves free", () => {
  const queue = queueOf(
    task("wide", { weight: 9, slots: 2, limits: ["run"] }),
    task("narrow", { limits: ["run"] }),
  );
  expect(names(queue.admit(views({ p: [2, 1], run: [1, 1] })))).toBe("");
  queue.release("run");
  expect(names(queue.admit(views({ p: [2, 1], run: [1, 0] })))).toBe("narrow");
});

test("is not blocked by a task wider than its whole pool, which runs once the pool has grown", () => {
  const queue = queueOf(task("huge", { weight: 9, slots: 8 }), task("narrow"), task("after"));
  expect(names(queue.admit(views({ p: [4, 3] })))).toBe("narrow");
  expect(names(queue.admit(views({ p: [8, 0] })))).toBe("huge");
  expect(names(queue.admit(views({ p: [8, 0] })))).toBe("after");
});

test("holds back only the tasks of a full limit, until it is released", () => {
  const queue = queueOf(
    task("r1", { weight: 9, limits: ["run"] }),
    task("r2", { weight: 8, limits: ["run"] }),
    task("r3", { weight: 7, limits: ["run"] }),
    task("free"),
  );
  expect(names(queue.admit(views({ p: [9, 0], run: [1, 0] })))).toBe("r1 free");
  expect(names(queue.admit(views({ p: [9, 2], run: [1, 1] })))).toBe("");
  queue.release("run");
  expect(names(queue.admit(views({ p: [9, 0], run: [2, 0] })))).toBe("r2 r3");
});

test("makes a task wait for each of several limits, without holding back others from the free one", () => {
  const queue = queueOf(
    task("both", { weight: 9, limits: ["run", "task"] }),
    task("both2", { weight: 8, limits: ["run", "task"] }),
    task("one", { limits: ["run"] }),
  );
  expect(names(queue.admit(views({ p: [9, 0], run: [1, 1], task: [1, 1] })))).toBe("");
  queue.release("run");
  expect(names(queue.admit(views({ p: [9, 0], run: [1, 0], task: [1, 1] })))).toBe("one");
  queue.release("task");
  expect(names(queue.admit(views({ p: [9, 0], run: [2, 1], task: [9, 0] })))).toBe("both");
});

test("does not let a released task in a full pool hold the limit from another pool", () => {
  const queue = queueOf(task("a", { weight: 9, limits: ["run"] }), task("b", { pool: "q", limits: ["run"] }));
  queue.admit(views({ p: [1, 0], q: [1, 0], run: [1, 1] }));
  queue.release("run");
  expect(names(queue.admit(views({ p: [1, 1], q: [1, 0], run: [1, 0] })))).toBe("b");
});

test("lets others pass a released task that has become too wide for its pool", () => {
  const queue = queueOf(
    task("wide", { weight: 9, slots: 2, limits: ["run"] }),
    task("narrow", { limits: ["run"] }),
  );
  queue.admit(views({ p: [2, 0], run: [1, 1] }));
  queue.release("run");
  expect(names(queue.admit(views({ p: [1, 0], run: [1, 0] })))).toBe("narrow");
});

test("picks a better task first that arrived under a full limit", () => {
  const queue = queueOf(task("early", { limits: ["run"] }));
  queue.admit(views({ p: [9, 0], run: [1, 1] }));
  queue.add(task("better", { weight: 5, limits: ["run"] }));
  queue.release("run");
  expect(names(queue.admit(views({ p: [9, 0], run: [1, 0] })))).toBe("better");
});

test("never picks a removed task, and lets the tasks behind it pass", () => {
  const gone = task("gone", { weight: 9, slots: 3, limits: ["run"] });
  const queue = queueOf(gone, task("next", { limits: ["run"] }));
  expect(queue.remove(gone)).toBe(true);
  expect(queue.remove(gone)).toBe(false);
  expect(names(queue.admit(views({ p: [1, 0], run: [1, 0] })))).toBe("next");
});

test("gives the limit to the next task when a released task is removed", () => {
  const first = task("first", { weight: 9, limits: ["run"] });
  const queue = queueOf(first, task("next", { slots: 2, limits: ["run"] }));
  queue.admit(views({ p: [2, 0], run: [1, 1] }));
  queue.release("run");
  queue.remove(first);
  expect(names(queue.admit(views({ p: [2, 0], run: [1, 0] })))).toBe("next");
});

test("keeps the turn of a task that is added again", () => {
  const queue = queueOf(task("a"), task("b"));
  const [a] = queue.admit(views({ p: [1, 0] }));
  queue.add(task("c"));
  queue.add(a!);
  expect(names(queue.admit(views({ p: [-1, 0] })))).toBe("a b c");
});

test("picks at most as many tasks as requested, the best of all pools first", () => {
  const queue = queueOf(
    task("a", { weight: 1 }),
    task("b", { weight: 3, pool: "q" }),
    task("c", { weight: 2 }),
  );
  expect(names(queue.admit(views({ p: [9, 0], q: [9, 0] }), 2))).toBe("b c");
});

test("has a cost per pick that does not depend on the number of waiting tasks", () => {
  const reads = (waiting: number) => {
    let count = 0;
    const queue = new ReadyQueue<Candidate>();
    for (let i = 0; i < waiting; i++) {
      const weight = (i * 7919) % waiting;
      const limits = i % 2 ? ["run"] : [];
      queue.add({
        ...task("t", { limits, slots: 1 }),
        get weight() {
          count++;
          return weight;
        },
      });
    }
    let occupied = 0;
    const view = (name: string) =>
      name === "p" ? { slots: occupied + 1, occupied } : { slots: 1, occupied: 1 };
    queue.admit(view, 1);
    count = 0;
    for (let i = 0; i < 100; i++) {
      queue.release("run");
      expect(queue.admit(view, 1)).toHaveLength(1);
      occupied++;
    }
    return count / 100;
  };
  const few = reads(1_000);
  const many = reads(64_000);
  expect(many).toBeLessThan(few * 2.5);
  expect(many).toBeLessThan(400);
});

/** Lists and compares versions of a DAG, and clears runs with one or the other, against a real server. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];

const first = "import { dag } from 'tradewind';\n\nexport default dag('etl', (d) => {\n  d.task('a');\n});\n";

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
  await server.addDag(
    manifestOf("etl", [
      { taskId: "a", retries: 1 },
      { taskId: "b", upstream: ["a"] },
    ]),
    first,
  );
  await server.addRun("etl", { runId: "old", state: "success" });
  await server.addDag(
    manifestOf(
      "etl",
      [
        { taskId: "a", retries: 3 },
        { taskId: "c", upstream: ["a"] },
      ],
      { maxActiveRuns: 2 },
    ),
    first.replace("d.task('a')", "d.task('a', { retries: 3 })"),
  );
  await server.addDag(manifestOf("single", [{ taskId: "a" }]));
});

describe("dags versions", () => {
  it("lists versions, newest first, and marks the current one", async () => {
    const { code, stdout } = await tw("dags", "versions", "etl");
    expect(code).toBe(0);
    expect(stdout).toMatch(/VERSION.*\n +2 .*current\n +1 .*\n$/);
    const listed = JSON.parse((await tw("dags", "versions", "etl", "--json")).stdout);
    expect(listed.map((each: { version_number: number }) => each.version_number)).toEqual([2, 1]);
    expect(await tw("dags", "versions", "nope")).toMatchObject({ code: 3 });
  });
});

describe("dags diff", () => {
  it("compares the current version with the previous one", async () => {
    const { code, stdout } = await tw("dags", "diff", "etl");
    expect(code).toBe(0);
    expect(stdout.split("\n").slice(0, 11)).toEqual([
      "etl: version 1 → 2",
      "~ maxActiveRuns 16 → 2",
      "+ task c",
      "- task b",
      "~ task a: retries 1 → 3",
      "+ edge a → c",
      "- edge a → b",
      "",
      "--- etl, version 1",
      "+++ etl, version 2",
      "@@ -1,5 +1,5 @@",
    ]);
    expect(stdout).toContain("-  d.task('a');\n+  d.task('a', { retries: 3 });\n");
    expect((await tw("dags", "diff", "etl", "--no-source")).stdout).not.toContain("@@");
  });

  it("compares any two, in either direction", async () => {
    const back = JSON.parse((await tw("dags", "diff", "etl", "2", "1", "--json")).stdout);
    expect(back).toMatchObject({
      from: { version_number: 2 },
      to: { version_number: 1 },
      is_same_shape: false,
      tasks: { added: ["b"], removed: ["c"], changed: [{ id: "a", fields: [{ from: 3, to: 1 }] }] },
    });
    expect(back).toHaveProperty("source_diff");
    const bare = (await tw("dags", "diff", "etl", "2", "1", "--no-source", "--json")).stdout;
    expect(Object.keys(JSON.parse(bare))).toEqual(Object.keys(back).filter((key) => key !== "source_diff"));
    expect((await tw("dags", "diff", "etl", "2", "2")).stdout).toBe("etl: version 2 → 2\nNothing differs.\n");
  });

  it("names a version that does not exist", async () => {
    for (const [argv, said] of [
      [["etl", "7"], 'DAG "etl" has no version 7: it never existed, or it was deleted'],
      [["etl", "7"], "→ `tradewind dags versions etl` lists its versions"],
      [["single"], 'DAG "single" has no version before 1'],
      [["nope"], "nope"],
    ] as const)
      expect(await tw("dags", "diff", ...argv)).toMatchObject({
        code: 3,
        stderr: expect.stringContaining(said),
      });
  });
});

describe("clear", () => {
  it("reruns with the version of the run or with the current one", async () => {
    const id = (await server.sql<{ id: number }>("SELECT id FROM dag_run WHERE run_id = 'old'"))[0]!.id;
    await server.sql("UPDATE dag_run SET version_id = (SELECT min(id) FROM dag_version) WHERE id = $1", [id]);
    await server.addInstance(id, "a", { state: "success", tryNumber: 1 });
    await server.addInstance(id, "b", { state: "success", tryNumber: 1 });
    const version = async () => /version +(\d)/.exec((await tw("runs", "show", "etl", "old")).stdout)?.[1];
    expect(await tw("runs", "clear", "etl", "old", "--yes")).toMatchObject({ code: 0 });
    expect(await version()).toBe("1");
    await server.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [id]);
    await server.sql("UPDATE task_instance SET state = 'success' WHERE dag_run_id = $1", [id]);
    const moved = " on version 2: a; new tasks: c; removed tasks: b.\n";
    const clear = ["tasks", "clear", "etl", "old", "a", "--downstream"];
    expect((await tw(...clear, "--dry-run")).stderr).toBe("Would rerun: a, b.\n");
    expect((await tw(...clear, "--latest-version", "--dry-run")).stderr).toBe(`Would rerun${moved}`);
    expect((await tw("tasks", "clear", "etl", "old", "b", "--latest-version", "--dry-run")).stderr).toContain(
      "on version 2: none; new tasks: c; removed tasks: b.",
    );
    const whole = ["runs", "clear", "etl", "old", "--latest-version"];
    expect((await tw(...whole, "--dry-run")).stderr).toBe(`Would rerun 1 task${moved}`);
    expect(await tw(...clear, "--latest-version", "--yes")).toMatchObject({
      code: 0,
      stderr: `Rerunning${moved}`,
    });
    expect(await version()).toBe("2");
    // The run already has this version.
    await server.sql("UPDATE task_instance SET state = 'success' WHERE dag_run_id = $1", [id]);
    expect((await tw("tasks", "clear", "etl", "old", "a", "--latest-version", "--dry-run")).stderr).toBe(
      "Would rerun: a.\n",
    );
  });
});

/** DAG files that fail to load: a few below the list of DAGs, all in `dags errors`. */
import { beforeAll, expect, it } from "vitest";
import type { Installation } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];
const breakFiles = (from: number, to: number) =>
  server.sql(
    `INSERT INTO import_error (file, message)
     SELECT 'f' || lpad(i::text, 2, '0') || '.ts', E'Odd: no ' || i || E'\\n    1 | \\x1b[2Jframe' FROM generate_series($1::int, $2) AS i`,
    [from, to],
  );

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
});

it("shows the first errors with a count and a command, and all errors in `dags errors`", async () => {
  expect(await tw("dags", "errors")).toMatchObject({ code: 0, stdout: "", stderr: "All files load.\n" });
  await breakFiles(1, 3);
  expect((await tw("dags", "list")).stderr).toContain("3 files failed to load:\n");
  expect((await tw("dags", "list")).stderr).not.toContain("more");
  await breakFiles(4, 14);

  expect((await tw("dags", "list")).stderr).toMatch(
    /14 files failed to load:\n(?: {2}f\d\d\.ts: Odd: no \d+\n){3} {2}… and 11 more: `tradewind dags errors` lists all\.\n$/,
  );
  const { code, stdout } = await tw("dags", "errors");
  expect(code).toBe(1);
  expect(stdout.match(/^f\d\d\.ts {2}.*\n {2}Odd: no \d+\n {6}1 \| frame$/gm)).toHaveLength(14);
  expect(JSON.parse((await tw("dags", "errors", "--json")).stdout)).toHaveLength(14);

  const doctor = await tw("doctor");
  const lines = doctor.stdout.match(/^warn {2}DAG files: .*$/gm) ?? [];
  expect(lines).toHaveLength(11);
  expect(lines.at(-1)).toBe("warn  DAG files: 4 more files fail to load");
  const others = (doctor.stdout.match(/^warn /gm) ?? []).length - 11;
  expect(doctor.stderr).toContain(` ${14 + others} warnings.`);
});

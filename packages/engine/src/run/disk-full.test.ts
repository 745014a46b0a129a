/** No event is lost while the database has no disk space. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { type Logger, silentLogger } from "../service/logger.ts";
import { adhoc } from "../store/database/database.ts";

let rig: SchedulerRig;

beforeEach(async () => {
  rig = await SchedulerRig.open();
});

afterEach(() => rig.close());

const sql = (text: string) => rig.db.rows(adhoc(text));

it("logs a full disk once, and stores the reports of tasks when there is space again", async () => {
  await rig.publish({
    "chain.ts": `import { dag } from "tradewind";
      export default dag("chain", {}, (d) => {
        const a = d.task("a", () => 7);
        d.task("b", { inputs: { a } }, ({ a }) => a + 1);
      });`,
  });
  await sql("CREATE SEQUENCE refused");
  // Sequences are not rolled back: rejected rows stay counted.
  await sql(`CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM nextval('refused');
      RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$`);
  await sql(`CREATE TRIGGER no_space BEFORE INSERT ON xcom FOR EACH ROW EXECUTE FUNCTION no_space()`);
  const errors: string[] = [];
  const warnings: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message) => warnings.push(message),
    error: (message) => errors.push(message),
    child: () => logger,
  };
  await rig.scheduler({ logger });
  const run = await rig.trigger("chain");
  const refused = async () =>
    (await rig.db.one<{ n: number }>(adhoc("SELECT last_value::int AS n FROM refused")))!.n;
  await rig.until(async () => (await refused()) >= 3, "three rejected batches");
  expect((await rig.states(run)).b).toBe("pending");
  expect({ errors, warnings }).toEqual({ errors: [], warnings: ["the database is unavailable"] });
  await sql("DROP TRIGGER no_space ON xcom");
  expect(await rig.ended(run)).toBe("success");
  expect(await rig.output(run, "b")).toBe(8);
  const attempts = "SELECT count(*)::int AS n FROM task_attempt WHERE state <> 'success'";
  expect((await rig.db.one<{ n: number }>(adhoc(attempts)))!.n).toBe(0);
});

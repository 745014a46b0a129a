/**
 * The order of the test files. Vitest begins with those that took longest the last time; a fresh checkout has no last
 * time, and a long file that comes last keeps one worker busy and lets the others wait. So these are named. They are
 * spread over the first two thirds: several storms at once starve each other, and then their clocks run out.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONG = [
  /\/test\/fault\//,
  /-faults\.test\.ts$/,
  /\/(embedded-postgres|installed|grpc|dst-tables|thousand-files|dags-test|timetable-desk|mapping)\.test\.ts$/,
  /\/reference\.prop\.test\.ts$/,
];

export class FileOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((pattern) => pattern.test(moduleId));
    const sorted = await super.sort(files);
    const long = sorted.filter(isLong);
    const short = sorted.filter((file) => !isLong(file));
    const between = Math.floor(((2 / 3) * short.length) / Math.max(1, long.length));
    const spread = long.flatMap((file, at) => [file, ...short.slice(at * between, (at + 1) * between)]);
    return [...spread, ...short.slice(long.length * between)];
  }
}

/**
 * The order of the test files. Vitest begins with those that took longest the last time; a fresh checkout has no last
 * time, and a long file that comes last keeps one worker busy and lets the others wait. So these are named.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONG = [
  /\/test\/fault\//,
  /-faults\.test\.ts$/,
  /\/(embedded-postgres|installed|grpc|dst-tables|thousand-files|dags-test|timetable-desk|mapping)\.test\.ts$/,
  /\/reference\.prop\.test\.ts$/,
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((pattern) => pattern.test(moduleId));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

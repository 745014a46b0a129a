/**
 * The order of the test files. Vitest begins with the files that took longest in the previous run. A fresh checkout has no
 * previous run, and a long file at the end keeps one worker busy while the others wait. So the long files are named here.
 * They are spread over the first two thirds: several storms at once starve each other until they time out.
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

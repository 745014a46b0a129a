import type { Figure } from "../result.ts";
import { openRig } from "../rig.ts";
import { smallFile } from "../shapes.ts";

/** On a new installation: nothing is cached. */
export async function loadFiles(): Promise<Figure[]> {
  const rig = await openRig();
  try {
    const names = Array.from({ length: 200 }, (_, n) => `small_${String(n).padStart(3, "0")}`);
    const first = await rig.publish(Object.fromEntries(names.map((name) => [`${name}.ts`, smallFile(name)])));
    const again = await rig.publish({});
    return [
      {
        scenario: "g",
        what: "200 small DAG files, first load",
        value: first.ms / 1_000,
        unit: "s",
        bar: { atMost: 3 },
      },
      { scenario: "g", what: "the same, unchanged", value: again.ms, unit: "ms" },
    ];
  } finally {
    await rig.stop();
  }
}

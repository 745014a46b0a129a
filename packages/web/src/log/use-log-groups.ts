/** Which groups of a log are folded: as usual for each, until the reader folds or unfolds one. */
import { useCallback, useMemo, useState } from "react";
import { groupsAround, groupsOf, isUsuallyFolded, type LogGroup } from "./log-groups.ts";
import type { LogModel } from "./log-model.ts";

type Choices = ReadonlyMap<number, boolean>;
const NO_CHOICES: Choices = new Map();

export interface LogGroups {
  readonly groups: readonly LogGroup[];
  readonly isFolded: (group: LogGroup) => boolean;
  /** @param line The title of a group. */
  readonly fold: (line: number, folded: boolean) => void;
  readonly foldAll: (folded: boolean) => void;
  /** Unfolds what hides a line. */
  readonly reveal: (line: number) => void;
}

export function useLogGroups(model: LogModel, lines: number): LogGroups {
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again when there are more lines
  const groups = useMemo(() => groupsOf(model.kinds), [model, lines]);
  const [choices, setChoices] = useState(NO_CHOICES);
  const isFolded = useCallback(
    (group: LogGroup) => choices.get(group.first) ?? isUsuallyFolded(group),
    [choices],
  );
  const choose = (which: readonly LogGroup[], folded: boolean) => {
    if (which.length === 0) return;
    setChoices((before) => new Map([...before, ...which.map(({ first }) => [first, folded] as const)]));
  };
  const fold = useCallback((line: number, folded: boolean) => {
    setChoices((before) => new Map(before).set(line, folded));
  }, []);
  return {
    groups,
    isFolded,
    fold,
    foldAll: (folded) => choose(groups, folded),
    reveal: (line) => choose(groupsAround(groups, line).filter(isFolded), false),
  };
}

/** Notices of a test: recorded, and not sent. The run receives the signals, as in production. */
import {
  failureReason,
  firstFailure,
  type GroupEvent,
  groupNotice,
  type Instance,
  type NoticeCause,
  type NoticeEvent,
  type NoticeReport,
  type RunModel,
  runNotice,
  taskNotice,
} from "@tradewind/engine/model";
import type { NoticeAction } from "@tradewind/sdk/manifest";
import type { ErrorFacts, RunFacts } from "@tradewind/sdk/program";
import type { Clock } from "./clock.ts";
import type { Journal } from "./journal.ts";

export interface NoticesParts {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly model: RunModel;
  readonly run: RunFacts;
}

type Actions = readonly NoticeAction[] | undefined;

export class Notices {
  readonly #parts: NoticesParts;

  constructor(parts: NoticesParts) {
    this.#parts = parts;
  }

  ofTask(instance: Instance, event: NoticeEvent, error: ErrorFacts | null): void {
    const { mapIndex, node, retryAt, startedAt, tryNumber } = instance;
    const endedAt = this.#parts.clock.now();
    const reason = error && failureReason(error);
    const of = { taskId: node.id, mapIndex, tryNumber, retryAt, startedAt, endedAt, reason };
    this.#record(node.manifest.notices?.[event], () => taskNotice(this.#parts.run, event, of));
  }

  ofGroup(groupId: string, mapIndex: number, { event, tryNumber }: GroupEvent, retryAt: number | null): void {
    const { model, run } = this.#parts;
    const { notices } = model.graph.groups.find(({ id }) => id === groupId)?.manifest ?? {};
    const first = () => (event === "success" ? undefined : model.groups?.firstFailure(groupId, mapIndex));
    const report = () => groupNotice(run, event, { groupId, mapIndex, tryNumber, retryAt });
    this.#record(notices?.[event], report, first);
  }

  ofRun(
    actions: Actions,
    event: Exclude<NoticeEvent, "retry">,
    of: { readonly tryNumber: number; readonly reason: string | null },
  ): void {
    const { model, run } = this.#parts;
    const first = () =>
      event === "failure" ? firstFailure(model.instances(), ({ isLeaf }) => isLeaf) : undefined;
    this.#record(actions, () => runNotice(run, event, of), first);
  }

  #record(
    actions: Actions = [],
    report: () => NoticeReport,
    first: () => Instance | undefined = () => undefined,
  ): void {
    if (actions.length === 0) return;
    const { clock, journal } = this.#parts;
    const made = report();
    const failed = first();
    const cause = failed ? this.#cause(failed) : null;
    const said = { ...made, endedAt: made.endedAt ?? new Date(clock.now()).toISOString(), cause };
    for (const action of actions) {
      journal.notice({ ...said, action });
      if (action.kind !== "signal") continue;
      const { key, namespace, value = { ...said, cause: cause && { ...cause } } } = action;
      journal.signals.addExternal({ namespace, key, value });
    }
  }
  #cause(instance: Instance): NoticeCause {
    const { mapIndex, node, tryNumber } = instance;
    const { error, reason } = this.#parts.journal.result(instance);
    return { taskId: node.id, mapIndex, tryNumber, reason: error ? failureReason(error) : reason };
  }
}

import { LiveActions, LiveAssets, LiveHome, LiveSignals, LiveWaits } from "./live-invalidations.ts";
import { LiveRuns } from "./live-runs.ts";
import { LiveApprovals, LiveBackfills, LiveDags, LiveErrors, LiveJobs, LivePools } from "./live-snapshots.ts";
import type { LiveSource } from "./live-source.ts";

/** All sources of messages, each with its topics. */
export function liveSources(): LiveSource[] {
  return [
    new LiveRuns(),
    new LiveDags(),
    new LiveSignals(),
    new LiveWaits(),
    new LiveApprovals(),
    new LiveBackfills(),
    new LiveAssets(),
    new LiveJobs(),
    new LivePools(),
    new LiveErrors(),
    new LiveActions(),
    new LiveHome(),
  ];
}

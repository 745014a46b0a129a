/**
 * How long outputs may be, as a child is told once, when it starts: as JSON, in characters what it sends with the end
 * of the task, in bytes what it sends at all. In between an output goes ahead of the end, in pieces.
 */
export interface OutputLimits {
  readonly inline: number;
  readonly most: number;
}

/** For an executor that has no place for large outputs. */
export const INLINE_ONLY: OutputLimits = { inline: 16 * 1024 * 1024, most: 16 * 1024 * 1024 };

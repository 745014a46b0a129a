/**
 * The limits of outputs, sent to a child when it starts: the characters of JSON that it may send with the end of the
 * task, and the bytes that it may send at all. An output between the limits is sent before the end, in pieces.
 */
export interface OutputLimits {
  readonly inline: number;
  readonly most: number;
}

/** For an executor without a store for large outputs. */
export const INLINE_ONLY: OutputLimits = { inline: 16 * 1024 * 1024, most: 16 * 1024 * 1024 };

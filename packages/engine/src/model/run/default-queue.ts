/** The queue of tasks that name none. */
export const DEFAULT_QUEUE = "default";

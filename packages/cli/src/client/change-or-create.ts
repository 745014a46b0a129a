import { HttpError } from "./http-error.ts";

/** Changes an object, or creates it if it does not exist. */
export async function changeOrCreate<T>(change: () => Promise<T>, create: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (error instanceof HttpError && error.status === 404) return create();
    throw error;
  }
}

/** Layouts in the browser's database, by the hash of their structure. Without one, every layout is computed. */
import type { Boxes } from "./elk-graph.ts";

const NAME = "tradewind-layouts";
const STORE = "layouts";
/** With more layouts than this, all are removed. */
const MOST = 300;

let opened: Promise<IDBDatabase | null> | undefined;

function open(): Promise<IDBDatabase | null> {
  opened ??= new Promise((resolve) => {
    try {
      const request = indexedDB.open(NAME, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
  return opened;
}

export async function cachedLayout(hash: string): Promise<Boxes | null> {
  const database = await open();
  if (database === null) return null;
  return new Promise((resolve) => {
    const request = database.transaction(STORE).objectStore(STORE).get(hash);
    request.onsuccess = () => resolve((request.result as Boxes | undefined) ?? null);
    request.onerror = () => resolve(null);
  });
}

export async function cacheLayout(hash: string, boxes: Boxes): Promise<void> {
  const database = await open();
  if (database === null) return;
  const store = database.transaction(STORE, "readwrite").objectStore(STORE);
  const count = store.count();
  count.onsuccess = () => {
    if (count.result >= MOST) store.clear();
    store.put(boxes, hash);
  };
}

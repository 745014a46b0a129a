/** The queues in Redis: one BullMQ queue per name. A message is the id of an assignment, and nothing else. */
import { type ConnectionOptions, Queue } from "bullmq";

/** The prefix of all keys. Installations that share a Redis use different databases of it. */
export const PREFIX = "tradewind";
export const MESSAGE = "assignment";

/** BullMQ's priorities: 1 is the highest. */
const LOWEST = 2 ** 21 - 1;
const MIDDLE = 2 ** 20;

/** BullMQ separates the parts of its keys with colons. */
export function queueKey(queue: string): string {
  return queue.replaceAll("%", "%25").replaceAll(":", "%3A");
}

/** For processes that send: a call fails after one reconnect; the sender also limits its time. */
function senderConnection(url: string): ConnectionOptions {
  return { url, maxRetriesPerRequest: 1, retryStrategy };
}

/** For processes that receive: they wait until Redis is back. */
export function receiverConnection(url: string): ConnectionOptions {
  return { url, maxRetriesPerRequest: null, retryStrategy };
}

export function openQueue(name: string, url: string): Queue {
  return new Queue(queueKey(name), {
    connection: senderConnection(url),
    prefix: PREFIX,
    skipWaitingForReady: true,
    // A version check that fails because Redis is away would fail all later sends. Receivers check the version.
    skipVersionCheck: true,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
}

/** Larger weights of tasks go first: weight 0 is in the middle, so that negative weights have room, too. */
export function messagePriority(weight: number): number {
  return Math.min(LOWEST, Math.max(1, MIDDLE - weight));
}

function retryStrategy(times: number): number {
  return Math.min(50 * times, 1_000);
}

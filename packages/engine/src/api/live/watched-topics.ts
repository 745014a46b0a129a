/**
 * The topics that streams of this process watch. A topic stays for a while after its last stream has left, so that a
 * browser that reconnects has missed nothing.
 */
interface Watched {
  streams: number;
  /** The buffer has every message of the topic after this one. */
  readonly since: number;
  /** When its last stream left. */
  leftAt: number;
}

export class WatchedTopics {
  readonly #topics = new Map<string, Watched>();
  readonly #runs = new Set<string>();
  readonly #dags = new Set<string>();

  /** @param cursor the last message so far */
  add(topics: Iterable<string>, cursor: number): void {
    for (const topic of topics) {
      const known = this.#topics.get(topic);
      if (known) known.streams++;
      else {
        this.#topics.set(topic, { streams: 1, since: cursor, leftAt: 0 });
        this.#setOf(topic)?.add(nameOf(topic));
      }
    }
  }

  remove(topics: Iterable<string>): void {
    for (const topic of topics) {
      const known = this.#topics.get(topic);
      if (known && --known.streams === 0) known.leftAt = performance.now();
    }
  }

  /** Forgets topics that no stream has watched for `ms`. */
  expire(ms: number): void {
    for (const [topic, { leftAt, streams }] of this.#topics) {
      if (streams > 0 || performance.now() - leftAt < ms) continue;
      this.#topics.delete(topic);
      this.#setOf(topic)?.delete(nameOf(topic));
    }
  }

  has(topic: string): boolean {
    return this.#topics.has(topic);
  }

  get isEmpty(): boolean {
    return this.#topics.size === 0;
  }

  /** Whether there are topics to forget. */
  get hasIdle(): boolean {
    return this.#topics.values().some(({ streams }) => streams === 0);
  }

  /** Whether it was watched at all times since this message. */
  isSince(topic: string, cursor: number): boolean {
    const known = this.#topics.get(topic);
    return known !== undefined && known.since <= cursor;
  }

  /** "<dag_id>/<run_id>" of the topics of runs. */
  get runs(): ReadonlySet<string> {
    return this.#runs;
  }

  /** The DAGs of the topics of DAGs. */
  get dags(): ReadonlySet<string> {
    return this.#dags;
  }

  #setOf(topic: string): Set<string> | null {
    if (topic.startsWith("run:")) return this.#runs;
    return topic.startsWith("dag:") ? this.#dags : null;
  }
}

function nameOf(topic: string): string {
  return topic.slice(topic.indexOf(":") + 1);
}

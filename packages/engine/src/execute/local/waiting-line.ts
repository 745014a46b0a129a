/** First in, first out, with constant cost at both ends however long the line. */
export class WaitingLine<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Back to the front: it had its turn, and could not use it. */
  unshift(item: T): void {
    if (this.#head > 0) this.#items[--this.#head] = item;
    else this.#items.unshift(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): void {
    this.#head++;
    if (this.#head > 1_000 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }

  /** False: it does not stand here. */
  remove(item: T): boolean {
    const at = this.#items.indexOf(item, this.#head);
    if (at === this.#head) this.shift();
    else if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }
}

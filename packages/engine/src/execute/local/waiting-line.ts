/** A FIFO queue with constant cost at both ends. */
export class WaitingLine<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Puts an item back to the front that could not be placed. */
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

  /** False: the item is not in this queue. */
  remove(item: T): boolean {
    const at = this.#items.indexOf(item, this.#head);
    if (at === this.#head) this.shift();
    else if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }
}

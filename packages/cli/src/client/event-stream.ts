/** The subset of server-sent events that the API uses. */

export interface ServerEvent {
  readonly type: string;
  /** The position to resume after this event; undefined if the event has none. */
  readonly id: string | undefined;
  readonly data: readonly string[];
}

/** Yields complete events only. An event cut off by a broken connection is dropped: the server sends it again after a reconnect. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (response.body === null) return;
  let pending = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    pending += text;
    const blocks = pending.split("\n\n");
    pending = blocks.pop()!;
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event) yield event;
    }
  }
}

function parseEvent(block: string): ServerEvent | undefined {
  let type = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^(\w+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") type = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? undefined : { type, id, data };
}

/** The lines of a response of server-sent events, while it is being received. */
export async function* eventLines(response: Response): AsyncGenerator<string> {
  let pending = "";
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (pending + text).split("\n");
    pending = lines.pop()!;
    yield* lines;
  }
}

/**
 * `/ui/stream`: one stream of server-sent events per browser, for all its tabs. Its topics change without a new connection.
 * Another API process does not know the stream: the browser then connects again, with the new topics.
 */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { principalOf } from "../server/auth.ts";
import type { Resource } from "../server/context.ts";
import { notFound } from "../server/problem.ts";
import { stream } from "../server/streaming.ts";
import { UI_TAG } from "../ui/columns.ts";
import { LiveFeed } from "./live-feed.ts";
import { liveMessage } from "./live-messages.ts";
import { LiveStream } from "./live-stream.ts";
import { requireTopics, topicList } from "./live-topics.ts";

const query = z.strictObject({
  topics: z
    .string()
    .max(12_000)
    .transform((names) => (names === "" ? [] : names.split(",")))
    .pipe(topicList)
    .default([])
    .describe("Separated by commas; more with PUT /ui/stream/{stream_id}/topics."),
});

export const uiStream: Resource = (app, { database, logger, wakeUps }) => {
  const feed = new LiveFeed({ database, logger, wakeUps });
  /** Open streams, with the secret of their caller. */
  const streams = new Map<string, { readonly live: LiveStream; readonly secret: string }>();
  app.addHook("onClose", () => feed.close());

  app.get(
    "/ui/stream",
    {
      schema: {
        querystring: query,
        description: `Server-sent events: "open" (LiveOpen), "change" (LiveMessage), "resync" (LiveResync).`,
        // What the data of its events is; the stream itself is no JSON.
        response: { 200: liveMessage },
        tags: [UI_TAG.name],
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { topics } = request.query;
      requireTopics(principal, topics);
      const last = request.headers["last-event-id"];
      return stream(reply as FastifyReply, "text/event-stream", async function* (stop) {
        const live = new LiveStream(feed, topics);
        streams.set(live.id, { live, secret: principal.token });
        try {
          yield* live.events(stop, typeof last === "string" && last !== "" ? last : null);
        } finally {
          streams.delete(live.id);
        }
      });
    },
  );

  app.put(
    "/ui/stream/:stream_id/topics",
    {
      schema: {
        params: z.object({ stream_id: z.string().max(100) }),
        body: z.strictObject({ topics: topicList }),
        response: { 200: z.object({ topics: z.array(z.string()) }) },
        tags: [UI_TAG.name],
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { topics } = request.body;
      const open = streams.get(request.params.stream_id);
      if (open?.secret !== principal.token)
        throw notFound("This server has no such stream: connect again, with the new topics");
      requireTopics(principal, topics);
      await open.live.change(topics);
      return { topics };
    },
  );
};

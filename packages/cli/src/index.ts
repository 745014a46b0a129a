/** Everything a DAG file imports: `npm i tradewind` is enough for authors. */
export * from "@tradewind/sdk";

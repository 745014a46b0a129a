/** What a DAG file imports: `npm i tradewind` is all that an author needs. */
export * from "@tradewind/sdk";

/** The part of s3rver that the tests use; it has no types. */
declare module "s3rver" {
  export interface ListOptions {
    readonly delimiter?: string;
    readonly maxKeys?: number;
    readonly prefix?: string;
    readonly startAfter?: string;
  }

  export interface ObjectList {
    readonly objects: readonly { readonly key: string }[];
    readonly commonPrefixes: readonly string[];
    readonly isTruncated: boolean;
  }

  export default class S3rver {
    constructor(options: {
      readonly address?: string;
      readonly port?: number;
      readonly directory: string;
      readonly silent?: boolean;
      readonly configureBuckets?: readonly { readonly name: string }[];
    });
    /** A Koa application. */
    readonly middleware: ((ctx: { readonly path: string }, next: () => Promise<unknown>) => Promise<void>)[];
    readonly store: { listObjects(bucket: string, options: ListOptions): Promise<ObjectList> };
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}

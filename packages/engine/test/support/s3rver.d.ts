/** The part of s3rver that the tests use; it has no types. */
declare module "s3rver" {
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
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}

/**
 * A client of S3 or a compatible store, for stores that the operator has configured. Region, keys and endpoint come from the
 * environment, as the AWS SDK reads them (AWS_REGION, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL_S3, ...).
 */
import { S3Client } from "@aws-sdk/client-s3";

const CONNECT_TIMEOUT_MS = 5_000;
const SILENCE_MS = 30_000;

/** @param maxAttempts How often a request is sent. */
export function s3Client(maxAttempts: number): S3Client {
  const endpoint = process.env.AWS_ENDPOINT_URL_S3 || process.env.AWS_ENDPOINT_URL;
  return new S3Client({
    maxAttempts,
    // Nothing is printed to the console.
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_MS },
    // Also supported by compatible stores.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    ...(endpoint && { endpoint, forcePathStyle: true, region: process.env.AWS_REGION || "us-east-1" }),
  });
}

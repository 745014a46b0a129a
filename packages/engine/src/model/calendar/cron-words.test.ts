import { expect, it } from "vitest";
import { cronWords } from "./cron-words.ts";

it.each([
  ["0 2 * * 1-5", "At 02:00, Monday to Friday"],
  ["@daily", "At 00:00, every day"],
  ["@hourly", "Every hour"],
  ["@weekly", "At 00:00, Sunday"],
  ["@yearly", "At 00:00, on day 1 of the month, in January"],
  ["30 6,18 * * *", "At 06:30 and 18:30, every day"],
  ["0 9 * * sat,sun", "At 09:00, Saturday and Sunday"],
  ["0 9 * * 1,3,5", "At 09:00, Monday, Wednesday and Friday"],
  ["*/5 * * * *", "Every 5 minutes"],
  ["* * * * *", "Every minute"],
  ["7 * * * *", "Every hour, at minute 7"],
  ["5,20 * * * *", "At minutes 5 and 20 of the hour"],
  ["*/15 8-17 * * mon-fri", "Every 15 minutes, from 08:00 to 17:59, Monday to Friday"],
  ["0 8-17 * * *", "Every hour from 08:00 to 17:00"],
  ["0 */6 * * *", "At 00:00, 06:00, 12:00 and 18:00, every day"],
  ["0 */2 * * *", "Every 2 hours"],
  ["10 */2 * * *", "Every 2 hours, at minute 10"],
  ["*/20 */2 * * *", "Every 20 minutes, in every 2nd hour"],
  ["0 0 1,15 * *", "At 00:00, on days 1 and 15 of the month"],
  ["0 0 L * *", "At 00:00, on the last day of the month"],
  ["0 0 1,L * *", "At 00:00, on day 1 and the last day of the month"],
  ["0 0 * * 5L", "At 00:00, the last Friday of the month"],
  ["0 0 * * 1#2", "At 00:00, the second Monday of the month"],
  ["0 0 13 * 5", "At 00:00, on day 13 of the month or Friday"],
  ["0 0 */2 * 1", "At 00:00, every 2nd day of the month if it is Monday"],
  ["0 0 1 1-3 *", "At 00:00, on day 1 of the month, in January to March"],
  ["30 0 2 * * *", "At 02:00:30, every day"],
  ["*/10 * * * * *", "Every 10 seconds"],
  ["* * * * * *", "Every second"],
  ["30 * * * * *", "At second 30 of the minute"],
  ["0 0 * 6 ?", "At 00:00, in June"],
])("describes %s as: %s", (expression, words) => {
  expect(cronWords(expression).text).toBe(words);
});

it("reports whether the expression fires in every hour", () => {
  expect(cronWords("*/5 * * * *").isEveryHour).toBe(true);
  expect(cronWords("*/5 * * * 1").isEveryHour).toBe(false);
  expect(cronWords("0 2 * * *").isEveryHour).toBe(false);
});

it("rejects what the parser rejects", () => {
  expect(() => cronWords("0 25 * * *")).toThrow('invalid hour "25"');
});

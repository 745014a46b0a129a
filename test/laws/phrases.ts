/** Phrases that docs, comments, messages and test titles do without, each with what to write instead. */
interface Phrase {
  readonly pattern: RegExp;
  readonly instead: string;
}

const PHRASES: readonly Phrase[] = [
  { pattern: /(?<!["'`])\b[Nn]obody\b/, instead: "no process, no task, no user: name what is missing" },
  { pattern: /\bsomebody\b/i, instead: "a user, another process: name it" },
  { pattern: /\bwho(?:so)?ever\b/i, instead: "any user, the process that …" },
  { pattern: /\bwhatever\b/i, instead: "any …, in any case" },
  { pattern: /\banew\b/i, instead: "again" },
  { pattern: /\bfor ever\b/i, instead: "forever, indefinitely" },
  { pattern: /\bfor good\b/i, instead: "permanently" },
  { pattern: /\b(?:is|are|was|were|be) told\b/i, instead: "is notified, receives" },
  { pattern: /\b(?:is|are|was|were|be) asked\b(?! to\b)/i, instead: "is called, is queried" },
  { pattern: /\b(?:is|are|was|were) over\b/i, instead: "has ended, has expired" },
  { pattern: /\bby hand\b/i, instead: "manually" },
  { pattern: /\bin vain\b/i, instead: "without effect" },
  { pattern: /\bcomes? to be\b/i, instead: "is created" },
  { pattern: /\bis put to\b/i, instead: "is evaluated against" },
  { pattern: /\bbe it\b/i, instead: "possibly" },
  { pattern: /\bmakes? way\b/i, instead: "yields" },
];

interface PhraseUse {
  readonly line: number;
  readonly text: string;
  readonly instead: string;
}

export function phrasesIn(text: string): PhraseUse[] {
  return text.split("\n").flatMap((line, index) =>
    PHRASES.flatMap(({ pattern, instead }) => {
      const found = pattern.exec(line)?.[0];
      return found === undefined ? [] : [{ line: index + 1, text: found, instead }];
    }),
  );
}

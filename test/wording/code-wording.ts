/** Checks comments, declared names and test titles of the sources by the rules of this folder. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type CodeTexts, codeTextsOf, wordsOfName } from './code-texts.ts';
import { type WordingFinding, wordingPatterns, wordingRules } from './wording.ts';

export type CodePart = keyof CodeTexts;

export interface IdentifierRule {
  /** Words in lower case, separated by spaces. */
  readonly words: string;
  /** Position of the word in a checked name; any position if absent. */
  readonly at?: 'start' | 'whole';
  readonly use: string;
  readonly wrong: string;
  readonly right: string;
}

export interface IdentifierRules {
  readonly rules: readonly IdentifierRule[];
  /** `name` is a regular expression for the complete name; `files`, for the start of the paths in which it is allowed. */
  readonly allowed: readonly { readonly name: string; readonly files?: string; readonly reason: string }[];
}

export const identifierRules = (): IdentifierRules =>
  load(readFileSync(join(packageRoot(), 'test/wording/identifiers.yaml'), 'utf8')) as IdentifierRules;

const source =
  /^(?!src\/gen\/|.*\.d\.ts$|src\/debugger\/trace\/versions\/names-of-version-).*\.(?:tsx?|[cm]?js|sh|mmd)$|^bin\//;

export function sourceFiles(): readonly string[] {
  return execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], {
    cwd: packageRoot(),
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => source.test(file));
}

export interface CodeFinding extends WordingFinding {
  readonly part: CodePart;
}

type Message = { readonly part: CodePart; readonly offset: number; readonly message: string };

/** @returns a finder of the forbidden words in a name */
export function namesFinderOf({ rules, allowed }: IdentifierRules): (name: string, file?: string) => readonly string[] {
  const ruleByWord = new Map(rules.flatMap((rule) => rule.words.split(' ').map((word) => [word, rule] as const)));
  const exceptions = allowed.map(({ name, files = '' }) => ({
    name: new RegExp(`^(?:${name})$`),
    files: new RegExp(`^(?:${files})`),
  }));
  const isAllowed = (name: string, file: string): boolean =>
    exceptions.some((exception) => exception.name.test(name) && exception.files.test(file));
  return (name, file = '') => {
    const words = wordsOfName(name);
    const wordMessages = words.flatMap((word, i) => {
      const rule = ruleByWord.get(word);
      const isChecked = rule?.at === undefined || (rule.at === 'start' ? i === 0 : words.length === 1);
      return rule !== undefined && isChecked ? [`name "${name}" with "${word}": use ${rule.use}`] : [];
    });
    return wordMessages.length > 0 && isAllowed(name, file) ? [] : wordMessages;
  };
}

export type CodeWording = (file: string, text: string) => readonly CodeFinding[];

export function codeWordingOf(rules = wordingRules(), names = identifierRules()): CodeWording {
  const patterns = wordingPatterns(rules);
  const findNames = namesFinderOf(names);
  const inProse = (part: CodePart, { text, start }: { text: string; start: number }): Message[] =>
    patterns.flatMap(({ pattern, use }) =>
      [...text.matchAll(pattern)].map(({ 0: matchedText, index }) => ({
        part,
        offset: start + index,
        message: `${kindOf[part]} "${matchedText.replaceAll(/\s+/g, ' ')}": use ${use}`,
      })),
    );
  return (file, text) => {
    const { comments, identifiers, titles } = codeTextsOf(file, text);
    const inNames = identifiers.flatMap(({ text: name, start }) =>
      findNames(name, file).map((message): Message => ({ part: 'identifiers', offset: start, message })),
    );
    return [
      ...comments.flatMap((comment) => inProse('comments', comment)),
      ...titles.flatMap((title) => inProse('titles', title)),
      ...inNames,
    ]
      .toSorted((a, b) => a.offset - b.offset)
      .map(({ part, offset, message }) => {
        const lines = text.slice(0, offset).split('\n');
        return { part, file, line: lines.length, column: lines.at(-1)!.length + 1, message };
      });
  };
}

const kindOf = { comments: 'comment', identifiers: 'name', titles: 'test title' };

export const codeFindingsOf = (wording: CodeWording, files: readonly string[]): readonly CodeFinding[] =>
  files.flatMap((file) => wording(file, readFileSync(join(packageRoot(), file), 'utf8')));

const exportedType = /^export (?:declare )?(?:abstract )?(?:type|interface|class|enum) (\w+)/gm;

/** @returns the files that export each type name, for names of the product that more than one file exports */
export function repeatedTypeNames(files: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const filesOf = new Map<string, string[]>();
  for (const file of files.filter((filePath) => /^(src|machines|visualize)\/(?!.*\.test\.tsx?$)/.test(filePath))) {
    for (const [, name] of readFileSync(join(packageRoot(), file), 'utf8').matchAll(exportedType)) {
      filesOf.set(name!, [...(filesOf.get(name!) ?? []), file]);
    }
  }
  return new Map([...filesOf].filter(([, exporters]) => new Set(exporters).size > 1));
}

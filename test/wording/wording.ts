/** Checks the wording of user-facing texts by the rules in rules.yaml with textlint. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { TextlintKernel, type TextlintPluginCreator, type TextlintRuleModule } from '@textlint/kernel';
import { load } from 'js-yaml';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { sourcePlugin } from './source-texts.ts';

/** A phrase that user-facing texts do not contain. */
export interface WordingRule {
  /** Regular expression for whole words; a space matches any white space. */
  readonly match: string;
  /** Replacement. */
  readonly use: string;
  readonly wrong: string;
  readonly right: string;
}

export interface WordingFinding {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Node and Vitest import the CommonJS default export of this package differently. */
const { default: markdown }: { default: TextlintPluginCreator } = createRequire(import.meta.url)(
  '@textlint/textlint-plugin-markdown',
);

const folder = join(packageRoot(), 'test/wording');

export function wordingRules(): readonly WordingRule[] {
  return load(readFileSync(join(folder, 'rules.yaml'), 'utf8')) as WordingRule[];
}

const checkedPaths =
  /^(README|CHANGELOG|SECURITY|CONTRIBUTING)\.md$|^docs\/[^/]+\.md$|^deploy\/.*\.(md|yaml|txt)$|^(src|visualize|examples)\/.*\.(tsx?|js)$|^bin\/.*\.cjs$/;
/** Files that are generated from protobuf, have no text for users, or list old names. */
const excludedPaths =
  /^src\/gen\/|^src\/debugger\/trace\/versions\/names-of-version-|\.test\.tsx?$|\.d\.ts$|^deploy\/chart\/templates\/.*\.yaml$/;

/** Tracked files with texts that a user can see. */
export function textFiles(): readonly string[] {
  return execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], {
    cwd: packageRoot(),
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => checkedPaths.test(file) && !excludedPaths.test(file));
}

export type Wording = (file: string, text: string) => Promise<readonly WordingFinding[]>;

export const wordingPatterns = (rules: readonly WordingRule[]): readonly { pattern: RegExp; use: string }[] =>
  rules.map(({ match, use }) => ({
    pattern: new RegExp(`(?<![\\w-])(?:${match.replaceAll(' ', '\\s+')})(?![\\w-])`, 'gi'),
    use,
  }));

/** @returns a function that checks the text of a file, which it does not read */
export async function wordingOf(rules: readonly WordingRule[] = wordingRules()): Promise<Wording> {
  const patterns = wordingPatterns(rules);
  const rule: TextlintRuleModule = (context) => ({
    [context.Syntax.Str](node) {
      for (const { pattern, use } of patterns) {
        for (const { 0: matchedText, index } of node.value.matchAll(pattern)) {
          const padding = context.locator.range([index, index + matchedText.length]);
          context.report(
            node,
            new context.RuleError(`"${matchedText.replaceAll(/\s+/g, ' ')}": use ${use}`, { padding }),
          );
        }
      }
    },
  });
  const kernel = new TextlintKernel();
  return async (file, text) => {
    const { messages } = await kernel.lintText(text, {
      filePath: file,
      ext: extname(file),
      plugins: [
        { pluginId: 'markdown', plugin: markdown },
        { pluginId: 'source', plugin: sourcePlugin },
      ],
      rules: [{ ruleId: 'wording', rule }],
    });
    return messages.map(({ loc, message }) => ({ file, line: loc.start.line, column: loc.start.column, message }));
  };
}

export async function findingsOf(wording: Wording, files: readonly string[]): Promise<readonly WordingFinding[]> {
  const findings: WordingFinding[] = [];
  for (const file of files) {
    const text = readFileSync(join(packageRoot(), file), 'utf8');
    findings.push(...(await wording(file, text)));
  }
  return findings;
}

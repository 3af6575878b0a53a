/** The wording rules of user-facing texts. `npm run lint` applies them to the files of this package. */
import { describe, expect, test } from 'vitest';
import {
  codeWordingOf,
  identifierRules,
  isPending,
  namesFinderOf,
  pendingFolders,
  repeatedTypeNames,
  sourceFiles,
} from './code-wording.ts';
import { textFiles, wordingOf, wordingRules } from './wording.ts';

const wording = await wordingOf();
const linesOf = async (file: string, text: string) => (await wording(file, text)).map(({ line }) => line);

describe('each rule', () => {
  test.each(wordingRules().map((rule) => [rule.wrong, rule] as const))(
    'finds "%s" and accepts its correction',
    async (_, rule) => {
      const ofRule = await wordingOf([rule]);
      expect(await ofRule('docs/page.md', `${rule.wrong}\n`)).toHaveLength(1);
      expect(await wording('docs/page.md', `${rule.right}\n`)).toEqual([]);
    },
  );

  test('tells the author where the phrase is and what to write instead', async () => {
    expect(await wording('docs/page.md', '# Title\n\nEnvoy is started\nin spite of it.\n')).toEqual([
      { file: 'docs/page.md', line: 4, column: 1, message: '"in spite of": use despite, with' },
    ]);
  });
});

describe('what is checked', () => {
  test('of Markdown, all text but code', async () => {
    const text = '# Told\n\n| a | is told |\n|---|---|\n| `told` | told |\n\n```sh\ntold\n```\n\n- [told](told.md)\n';
    expect(await linesOf('README.md', text)).toEqual([1, 3, 5, 11]);
  });

  test('of a source, the strings, templates and texts of elements that a user can see', async () => {
    const lines = [
      '// a comment is told',
      "import { told } from './told.ts';",
      "log.info('a client is told');",
      `throw new Error(\`\${told} is told \${told} and is told\`);`,
      "const label = <p class='is told'>It is told</p>;",
      "type Outcome = 'is told';",
      "const key = { told: 'told' };",
      "const paths = { 'running.told to end': 'stopping', 'is told': 'is told' };",
      "const help = 'see \\`told it\\` and `told it`';",
    ];
    expect(await linesOf('visualize/page.tsx', `${lines.join('\n')}\n`)).toEqual([3, 4, 4, 5, 8, 8]);
  });

  test('of a chart, the comments of its values and the notes', async () => {
    expect(await linesOf('deploy/chart/values.yaml', 'told: told # is told\n# told\n')).toEqual([1, 2]);
    expect(await linesOf('deploy/chart/templates/NOTES.txt', 'told {{ if told }}told\ntold{{ end }}\n')).toEqual([
      1, 1, 2,
    ]);
  });

  test('in this package: docs, help, log messages, errors, the chart and the page, and nothing generated', () => {
    const files = textFiles();
    expect(files).toEqual(
      expect.arrayContaining([
        ...[
          'README.md',
          'CHANGELOG.md',
          'SECURITY.md',
          'CONTRIBUTING.md',
          'docs/identity.md',
          'docs/events.md',
          'docs/state-tables.md',
          'deploy/chart/values.yaml',
        ],
        ...[
          'src/runtime/errors.ts',
          'src/cli/commands/discovery.ts',
          'src/agent/agent-system.ts',
          'visualize/main.tsx',
        ],
      ]),
    );
    expect(files.filter((file) => /src\/gen|\.test\./.test(file))).toEqual([]);
  });
});

describe('the rules of names', () => {
  const { rules, allowed } = identifierRules();

  test.each(rules.map((rule) => [rule.wrong, rule] as const))('find "%s" and accept its correction', (wrong, rule) => {
    expect(namesFinderOf({ rules: [rule], allowed: [] })(wrong)).toHaveLength(1);
    expect(namesFinderOf({ rules, allowed })(rule.right)).toEqual([]);
  });

  test('check names that consist of a single word, and names that start with one, by rules of their own', () => {
    const find = namesFinderOf({ rules, allowed: [] });
    expect([find('own'), find('mostBytes'), find('leastRequest')].map((found) => found.length)).toEqual([1, 1, 1]);
    expect([find('ownerReference'), find('ownCertificate'), find('atMost')].flat()).toEqual([]);
  });

  test('accept an allowed name', () => {
    expect(namesFinderOf({ rules, allowed })('leastRequest')).toEqual([]);
  });
});

describe('code', () => {
  const check = (file: string, lines: readonly string[]) =>
    codeWordingOf()(file, `${lines.join('\n')}\n`).map(({ line, message }) => `${line} ${message.split(':')[0]}`);

  test('is checked in comments, where a phrase may continue on the next line, but not in code in backticks or links', () => {
    expect(
      check('src/a.ts', [
        '// it is started in',
        '// spite of `told`',
        'const text = "// told";',
        '/** @param told - {@link told} */',
      ]),
    ).toEqual(['1 comment "in spite of"']);
  });

  test('is checked in the names that it declares, not in those that it uses', () => {
    expect(
      check('src/a.ts', [
        'const told = answer();',
        'function f(asked: string, { said, x: heard }: T) { return told; }',
        'interface A { readonly going: string; say(): void }',
        'class B { #coming = 1; constructor(readonly made: string) {} }',
        'const [gone = 1, ...looked] = told;',
      ]),
    ).toEqual([
      '1 name "told" with "told"',
      '2 name "asked" with "asked"',
      '2 name "heard" with "heard"',
      '3 name "going" with "going"',
      '3 name "say" with "say"',
      '4 name "coming" with "coming"',
      '4 name "made" with "made"',
      '5 name "gone" with "gone"',
      '5 name "looked" with "looked"',
    ]);
  });

  test('is checked in the titles of tests', () => {
    const lines = [
      "test('is told', () => {});",
      'test.each([1])(`is %s \\`told\\` told`, () => {});',
      "expect('told');",
    ];
    expect(check('src/a.test.ts', lines)).toEqual(['1 test title "told"', '2 test title "told"']);
    expect(check('src/a.ts', lines)).toEqual([]);
  });

  test('that is pending is not reported', () => {
    const [finding] = codeWordingOf()('src/a/a.ts', '// told\n');
    const none = { comments: [], identifiers: [], titles: [], types: [] };
    expect(isPending({ ...none, comments: ['src/a'] }, finding!)).toBe(true);
    expect(isPending({ ...none, comments: ['src'], titles: ['src/a'] }, finding!)).toBe(false);
  });

  test('exports a type name from one file, except the names that are pending', () => {
    const { types } = pendingFolders();
    const repeated = [...repeatedTypeNames(sourceFiles())].filter(([name]) => !types.includes(name));
    expect(Object.fromEntries(repeated)).toEqual({});
  });
});

/** The wording rules of user-facing texts. `npm run lint` applies them to the files of this package. */
import { describe, expect, test } from 'vitest';
import { codeWordingOf, identifierRules, namesFinderOf, repeatedTypeNames, sourceFiles } from './code-wording.ts';
import { textFiles, wordingOf, wordingRules } from './wording.ts';

const wording = await wordingOf();
const linesOf = async (file: string, text: string) => (await wording(file, text)).map(({ line }) => line);

describe('wording rules', () => {
  test.each(wordingRules().map((rule) => [rule.wrong, rule] as const))(
    'a wording rule finds "%s" and accepts its correction',
    async (_, rule) => {
      const ruleWording = await wordingOf([rule]);
      expect(await ruleWording('docs/page.md', `${rule.wrong}\n`)).toHaveLength(1);
      expect(await wording('docs/page.md', `${rule.right}\n`)).toEqual([]);
    },
  );

  test('a finding has the position of the phrase and its replacement', async () => {
    expect(await wording('docs/page.md', '# Title\n\nEnvoy is started\nin spite of it.\n')).toEqual([
      { file: 'docs/page.md', line: 4, column: 1, message: '"in spite of": use despite, with' },
    ]);
  });
});

describe('checked texts', () => {
  test('all text of a Markdown file except code is checked', async () => {
    const text = '# Told\n\n| a | is told |\n|---|---|\n| `told` | told |\n\n```sh\ntold\n```\n\n- [told](told.md)\n';
    expect(await linesOf('README.md', text)).toEqual([1, 3, 5, 11]);
  });

  test('user-visible strings, templates and element texts of a source are checked', async () => {
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

  test('comments in the values and notes of a chart are checked', async () => {
    expect(await linesOf('deploy/chart/values.yaml', 'told: told # is told\n# told\n')).toEqual([1, 2]);
    expect(await linesOf('deploy/chart/templates/NOTES.txt', 'told {{ if told }}told\ntold{{ end }}\n')).toEqual([
      1, 1, 2,
    ]);
  });

  test('docs, help, log messages, errors, the chart and the page of this package are checked, but not generated files', () => {
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

  test.each(rules.map((rule) => [rule.wrong, rule] as const))(
    'a name rule finds "%s" and accepts its correction',
    (wrong, rule) => {
      expect(namesFinderOf({ rules: [rule], allowed: [] })(wrong)).toHaveLength(1);
      expect(namesFinderOf({ rules, allowed })(rule.right)).toEqual([]);
    },
  );

  test('single-word names and the first words of names have separate rules', () => {
    const find = namesFinderOf({ rules, allowed: [] });
    expect([find('own'), find('mostBytes'), find('leastRequest')].map((nameMessages) => nameMessages.length)).toEqual([
      1, 1, 1,
    ]);
    expect([find('ownerReference'), find('ownCertificate'), find('atMost')].flat()).toEqual([]);
  });

  test('an allowed name has no findings', () => {
    expect(namesFinderOf({ rules, allowed })('leastRequest')).toEqual([]);
  });

  test('a name that is allowed in certain files has findings in all others', () => {
    const find = namesFinderOf({ rules, allowed: [{ name: 'verdict', files: 'src/check', reason: 'JSON key' }] });
    expect(find('verdict', 'src/check/check.ts')).toEqual([]);
    expect(find('verdict', 'src/other.ts')).toHaveLength(1);
  });
});

describe('the lint of code', () => {
  const check = (file: string, lines: readonly string[]) =>
    codeWordingOf()(file, `${lines.join('\n')}\n`).map(({ line, message }) => `${line} ${message.split(':')[0]}`);

  test('comments are checked, including phrases that span lines, except code in backticks and links', () => {
    expect(
      check('src/a.ts', [
        '// it is started in',
        '// spite of `told`',
        'const text = "// told";',
        '/** @param told - {@link told} */',
      ]),
    ).toEqual(['1 comment "in spite of"']);
  });

  test('names that a source declares are checked, but not its uses of names', () => {
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

  test('titles of tests are checked', () => {
    const lines = [
      "test('is told', () => {});",
      'test.each([1])(`is %s \\`told\\` told`, () => {});',
      "expect('told');",
    ];
    expect(check('src/a.test.ts', lines)).toEqual(['1 test title "told"', '2 test title "told"']);
    expect(check('src/a.ts', lines)).toEqual([]);
  });

  test('comments, messages and names of a shell script are checked', () => {
    const lines = [
      '#!/bin/sh',
      '# it runs in',
      '# spite of it',
      'told=$1 # told',
      'answer() { local limit said; read -r asked <"$told"; for heard in $told; do echo "told \\`told\\` $told" >&2; done; }',
    ];
    expect(check('bin/program', lines)).toEqual([
      '2 comment "in spite of"',
      '4 name "told" with "told"',
      '4 comment "told"',
      '5 name "answer" with "answer"',
      '5 name "said" with "said"',
      '5 name "asked" with "asked"',
      '5 name "heard" with "heard"',
      '5 comment "told"',
    ]);
  });

  test('description, labels and messages of a sequence diagram are checked, but not its participants', () => {
    const lines = [
      '%% it runs in',
      '%% spite of it',
      'sequenceDiagram',
      '  participant told as server/told',
      '  alt it is told',
      '    told->>server: server.told',
      '  else told',
      '    Note over told,server: told',
      '  end',
    ];
    expect(check('machines/agent/sequences/a.mmd', lines)).toEqual([
      '1 comment "in spite of"',
      '5 comment "told"',
      '6 comment "told"',
      '7 comment "told"',
      '8 comment "told"',
    ]);
  });

  test('scripts and sequence diagrams are checked', () => {
    expect(sourceFiles()).toEqual(
      expect.arrayContaining([
        'bin/pilot-agent',
        'bin/heap-limit.sh',
        'bin/node-version.cjs',
        'machines/agent/sequences/xds.mmd',
      ]),
    );
  });

  test('a type name is exported from one file only', () => {
    expect(Object.fromEntries(repeatedTypeNames(sourceFiles()))).toEqual({});
  });
});

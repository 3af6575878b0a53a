/** The wording rules of user-facing texts. `npm run lint` applies them to the files of this package. */
import { describe, expect, test } from 'vitest';
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
    expect(files.filter((file) => /docs\/events\.md|state-tables\.md|src\/gen|\.test\./.test(file))).toEqual([]);
  });
});

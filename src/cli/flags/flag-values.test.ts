import { Command } from 'commander';
import { expect, test } from 'vitest';
import { reportFlagValues } from './flag-values.ts';

let used: Record<string, unknown> = {};

function reported(...words: string[]): string[] {
  const collect = (value: string, previousValues: readonly string[] = []): string[] => [...previousValues, value];
  const program = new Command('program').addCommand(
    new Command('serve')
      .option('-n, --name <name>', 'a name')
      .option('--kinds <kinds>', 'a list', (value) => value.split(','))
      .option('--list <item>', 'collected', collect)
      .option('--accessToken <token>', 'a secret')
      .option('--registries <names>', 'a list that may be empty')
      .option('--level [level]', 'with an optional value')
      .option('--on', 'a switch')
      .action((flags) => {
        used = flags;
      }),
  );
  const messages: string[] = [];
  reportFlagValues(program, (message) => messages.push(message));
  program.parse(['serve', ...words], { from: 'user' });
  return messages;
}

test('a flag with different values in either spelling is reported once', () => {
  expect(reported('--name', 'a', '-n', 'b', '--name=c')).toEqual([
    '--name is given 3 times ("a", "b", "c"): only the last value is used. Give it once',
  ]);
});

test('equal values, switches and flags that accept several values are not reported', () => {
  expect(reported('--name', 'a', '--name', 'a', '--on', '--on', '--list', 'a', '--list', 'b')).toEqual([]);
});

test('a list flag that is set twice is reported, because its last value replaces the others', () => {
  expect(reported('--kinds', 'a,b', '--kinds', 'c')).toEqual([
    '--kinds is given 2 times ("a,b", "c"): only the last value is used. Give it once',
  ]);
  expect(reported('--kinds', 'a', '--kinds', 'c,d')).toEqual([
    '--kinds is given 2 times ("a", "c,d"): only the last value is used. Give it once',
  ]);
});

test('an empty value is reported and treated as unset, unless it has a meaning for the flag', () => {
  expect(reported('--name', '')).toEqual(['--name is empty ("") and counts as not given. Give a value, or omit it']);
  expect(used).not.toHaveProperty('name', '');
  expect(reported('--list', '', '--list', 'a')).toHaveLength(1);
  expect(used).toMatchObject({ list: ['a'] });
  expect(reported('--registries=', '--level')).toEqual([]);
  expect(used).toMatchObject({ registries: '', level: true });
});

test('reports omit the values of flags that contain a token', () => {
  expect(reported('--accessToken', 'a', '--accessToken', 'b')).toEqual([
    '--accessToken is given 2 times: only the last value is used. Give it once',
  ]);
});

import { Command } from 'commander';
import { expect, test } from 'vitest';
import { reportFlagValues } from './flag-values.ts';

let usedOptions: Record<string, unknown> = {};

function reportedProblems(...args: string[]): string[] {
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
        usedOptions = flags;
      }),
  );
  const messages: string[] = [];
  reportFlagValues(program, (message) => messages.push(message));
  program.parse(['serve', ...args], { from: 'user' });
  return messages;
}

test('a flag with different values in either spelling is reported once', () => {
  expect(reportedProblems('--name', 'a', '-n', 'b', '--name=c')).toEqual([
    '--name is given 3 times ("a", "b", "c"): only the last value is used. Give it once',
  ]);
});

test('equal values, switches and flags that accept several values are not reported', () => {
  expect(reportedProblems('--name', 'a', '--name', 'a', '--on', '--on', '--list', 'a', '--list', 'b')).toEqual([]);
});

test('a list flag that is set twice is reported, because its last value replaces the others', () => {
  expect(reportedProblems('--kinds', 'a,b', '--kinds', 'c')).toEqual([
    '--kinds is given 2 times ("a,b", "c"): only the last value is used. Give it once',
  ]);
  expect(reportedProblems('--kinds', 'a', '--kinds', 'c,d')).toEqual([
    '--kinds is given 2 times ("a", "c,d"): only the last value is used. Give it once',
  ]);
});

test('an empty value is reported and treated as unset, unless it has a meaning for the flag', () => {
  expect(reportedProblems('--name', '')).toEqual([
    '--name is empty ("") and counts as not given. Give a value, or omit it',
  ]);
  expect(usedOptions).not.toHaveProperty('name', '');
  expect(reportedProblems('--list', '', '--list', 'a')).toHaveLength(1);
  expect(usedOptions).toMatchObject({ list: ['a'] });
  expect(reportedProblems('--registries=', '--level')).toEqual([]);
  expect(usedOptions).toMatchObject({ registries: '', level: true });
});

test('reports omit the values of flags that contain a token', () => {
  expect(reportedProblems('--accessToken', 'a', '--accessToken', 'b')).toEqual([
    '--accessToken is given 2 times: only the last value is used. Give it once',
  ]);
});

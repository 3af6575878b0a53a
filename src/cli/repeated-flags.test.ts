import { Command } from 'commander';
import { expect, test } from 'vitest';
import { reportRepeatedFlags } from './repeated-flags.ts';

function reported(...words: string[]): string[] {
  const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
  const program = new Command('program').addCommand(
    new Command('serve')
      .option('-n, --name <name>', 'a name')
      .option('--list <item>', 'collected', collect)
      .option('--on', 'a switch')
      .action(() => {}),
  );
  const messages: string[] = [];
  reportRepeatedFlags(program, (message) => messages.push(message));
  program.parse(['serve', ...words], { from: 'user' });
  return messages;
}

test('a flag with several different values is reported once, in either spelling', () => {
  expect(reported('--name', 'a', '-n', 'b', '--name=c')).toEqual([
    '--name is given 3 times: only the last value is used',
  ]);
});

test('equal values, switches and flags that collect their values are not reported', () => {
  expect(reported('--name', 'a', '--name', 'a', '--on', '--on', '--list', 'a', '--list', 'b')).toEqual([]);
});

import { Command } from 'commander';
import { expect, test } from 'vitest';
import { plainSwitches } from './plain-switches.ts';

const program = new Command().addCommand(
  new Command('a').option('--plain').option('--valued <word>').option('--maybe [word]').option('--both'),
);
program.addCommand(new Command('b').option('--both <word>'));

test('§1.1 a switch may be said with a value, as Go takes it', () => {
  expect(plainSwitches(program, ['a', '--plain=true', '--plain=1', '--plain=F', '--plain'])).toEqual([
    ...['a', '--plain', '--plain', '--plain'],
  ]);
});

test('what takes a value, is not known, or is no word of Go stays as it is', () => {
  const args = [
    '--valued=true',
    '--maybe=false',
    '--both=true',
    '--bogus=true',
    '--plain=maybe',
    '--plain=',
    'plain=true',
  ];
  expect(plainSwitches(program, args)).toEqual(args);
});

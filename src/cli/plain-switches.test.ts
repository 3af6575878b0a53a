import { Command } from 'commander';
import { expect, test } from 'vitest';
import { plainSwitches } from './plain-switches.ts';

const program = new Command().addCommand(
  new Command('a').option('--plain').option('--valued <word>').option('--maybe [word]').option('--both'),
);
program.addCommand(new Command('b').option('--both <word>'));

test('§1.1 a switch may be said with a value, as Go takes it', () => {
  expect(plainSwitches(program, ['a', '--plain=true', '--plain=1', '--plain'])).toEqual([
    ...['a', '--plain', '--plain', '--plain'],
  ]);
  expect(plainSwitches(program, ['a', '--plain=F'])).toEqual(['a']);
});

test('§1.1 of several the last one counts', () => {
  expect(plainSwitches(program, ['--plain', 'a', '--plain=true', '--plain=false'])).toEqual(['a']);
  expect(plainSwitches(program, ['a', '--plain=false', '--plain'])).toEqual(['a', '--plain']);
});

test('what follows -- stays as it is, and takes nothing back', () => {
  const args = ['a', '--plain', '--', '--plain=true', '--plain=false'];
  expect(plainSwitches(program, args)).toEqual(args);
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

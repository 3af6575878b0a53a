import { Command } from 'commander';
import { expect, test } from 'vitest';
import { plainSwitches } from './plain-switches.ts';

const program = new Command().addCommand(
  new Command('a').option('--plain').option('--valued <word>').option('--maybe [word]').option('--both'),
);
program.addCommand(new Command('b').option('--both <word>'));

test('a switch accepts a value, as in Go (agent §1.1)', () => {
  expect(plainSwitches(program, ['a', '--plain=true', '--plain=1', '--plain'])).toEqual([
    ...['a', '--plain', '--plain', '--plain'],
  ]);
  expect(plainSwitches(program, ['a', '--plain=F'])).toEqual(['a']);
});

test('the last of several values of a switch applies (agent §1.1)', () => {
  expect(plainSwitches(program, ['--plain', 'a', '--plain=true', '--plain=false'])).toEqual(['a']);
  expect(plainSwitches(program, ['a', '--plain=false', '--plain'])).toEqual(['a', '--plain']);
});

test('arguments after -- are unchanged and do not reset switches', () => {
  const args = ['a', '--plain', '--', '--plain=true', '--plain=false'];
  expect(plainSwitches(program, args)).toEqual(args);
});

test('flags with values, unknown flags and invalid booleans are unchanged', () => {
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

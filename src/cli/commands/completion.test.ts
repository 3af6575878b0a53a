import { execFileSync } from 'node:child_process';
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { completionCommand } from './completion.ts';

function scriptFor(shell: string): string {
  let printedScript = '';
  const program = new Command('pilot-discovery').exitOverride();
  program
    .command('discovery')
    .summary("serve the mesh, as it's told")
    .option('--configDir <dir>')
    .option('--domain <d>');
  program.addCommand(completionCommand('tool', (text) => (printedScript = text)).exitOverride());
  program.parse(['completion', shell], { from: 'user' });
  return printedScript;
}

/** Completions that bash offers after these words. */
function completionsOf(...typedWords: string[]): string[] {
  const line = `COMP_WORDS=(pilot-discovery ${typedWords.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${typedWords.length}`;
  const script = `${scriptFor('bash')}\n${line}\n_pilot_discovery\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split('\n').filter(Boolean);
}

it('the bash completion completes commands, then flags', () => {
  expect(completionsOf('')).toEqual(['discovery', 'completion', 'help', '--help']);
  expect(completionsOf('dis')).toEqual(['discovery']);
  expect(completionsOf('discovery', '--c')).toEqual(['--configDir']);
  expect(completionsOf('completion', '')).toEqual(['bash', 'zsh', 'fish', 'powershell', '--help']);
});

it.each([
  ['zsh', 'bashcompinit'],
  ['fish', "complete -c pilot-discovery -n '__fish_seen_subcommand_from discovery' -l configDir"],
  ['fish', "-a discovery -d 'serve the mesh, as it\\'s told'"],
  ['powershell', "'discovery' { @('--configDir', '--domain', '--help') }"],
])('the completion command supports %s', (shell, text) => {
  expect(scriptFor(shell)).toContain(text);
});

it('the completion command rejects other shells', () => {
  expect(() => scriptFor('tcsh')).toThrow('tcsh');
});

import { Argument, Command } from 'commander';
import { standardOutput } from '../../runtime/output/standard-streams.ts';

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const;
type Shell = (typeof shells)[number];

interface CompletionWords {
  readonly program: string;
  readonly commands: readonly { readonly name: string; readonly summary: string; readonly words: readonly string[] }[];
}

export function completionCommand(
  program: string,
  print: (text: string) => void = (text) => standardOutput.print(`${text}\n`),
): Command {
  return new Command('completion')
    .summary('Print a shell completion script')
    .description(
      'Print a script that completes commands and flags. To load it:\n' +
        `  bash, zsh   source <(${program} completion bash)\n` +
        `  fish        ${program} completion fish | source\n` +
        `  powershell  ${program} completion powershell | Out-String | iex`,
    )
    .addArgument(new Argument('<shell>', 'Shell').choices(shells))
    .action((shell: Shell, _: object, command: Command) => print(completionScript(wordsOf(command.parent!), shell)));
}

function wordsOf(program: Command): CompletionWords {
  return {
    program: program.name(),
    commands: program.commands.map((command) => ({
      name: command.name(),
      summary: command.summary() || command.description(),
      words: [
        ...command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
        ...command.options.flatMap(({ long, hidden }) => (hidden || !long ? [] : long)),
        '--help',
      ],
    })),
  };
}

function completionScript(completionWords: CompletionWords, shell: Shell): string {
  switch (shell) {
    case 'bash':
      return bashScript(completionWords);
    case 'zsh':
      return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(completionWords)}`;
    case 'fish':
      return fish(completionWords);
    case 'powershell':
      return powershell(completionWords);
  }
}

/** Values of flags are often files, therefore files are completed if no word matches. */
function bashScript({ program, commands }: CompletionWords): string {
  const name = `_${program.replaceAll('-', '_')}`;
  return [
    `${name}() {`,
    `  local current="\${COMP_WORDS[COMP_CWORD]}" words=""`,
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${commands.map((command) => command.name).join(' ')} help --help"`,
    '  else',
    `    case "\${COMP_WORDS[1]}" in`,
    ...commands.map((command) => `      ${command.name}) words="${command.words.join(' ')}" ;;`),
    '    esac',
    '  fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    `complete -o default -F ${name} ${program}`,
  ].join('\n');
}

function fish({ program, commands }: CompletionWords): string {
  const quoteText = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
  return commands
    .flatMap(({ name, summary, words }) => [
      `complete -c ${program} -n __fish_use_subcommand -f -a ${name} -d ${quoteText(summary)}`,
      ...words.map((candidate) => {
        const condition = `-n '__fish_seen_subcommand_from ${name}'`;
        return candidate.startsWith('--')
          ? `complete -c ${program} ${condition} -l ${candidate.slice(2)}`
          : `complete -c ${program} ${condition} -f -a ${candidate}`;
      }),
    ])
    .join('\n');
}

function powershell({ program, commands }: CompletionWords): string {
  const list = (items: readonly string[]): string => items.map((item) => `'${item}'`).join(', ');
  return [
    `Register-ArgumentCompleter -Native -CommandName '${program}' -ScriptBlock {`,
    '  param($word, $tree, $position)',
    '  $said = @($tree.CommandElements | ForEach-Object { $_.ToString() })',
    `  $words = @(${list([...commands.map(({ name }) => name), 'help', '--help'])})`,
    '  if ($said.Count -gt 2 -or ($said.Count -eq 2 -and $word -eq "")) {',
    '    $words = switch ($said[1]) {',
    ...commands.map(({ name, words }) => `      '${name}' { @(${list(words)}) }`),
    '      default { @() }',
    '    }',
    '  }',
    '  $words | Where-Object { $_ -like "$word*" } | ForEach-Object {',
    "    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)",
    '  }',
    '}',
  ].join('\n');
}

import { Command } from 'commander';
import type { ChangesView } from '../../../discovery/changes/change-view.ts';
import { changesText } from '../../../discovery/changes/changes-text.ts';
import { parseTime, timeFormats } from '../../../discovery/changes/moment.ts';
import { mustBe } from '../../../model/fields/violation.ts';
import { optionError } from '../../../runtime/option-errors.ts';
import { standardOutput } from '../../../runtime/output/standard-streams.ts';
import { addFormatAndHelp, addFromFlag, type RemoteFlags, viewText } from './remote-view.ts';

interface ChangesFlags extends RemoteFlags {
  readonly since?: string;
  readonly until?: string;
  readonly object?: string;
  readonly proxy?: string;
  readonly rejected?: boolean;
  readonly endpoints?: boolean;
  readonly all?: boolean;
}

export function changesCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = addFromFlag(
    new Command('changes')
      .summary('Show recent changes and their pushes')
      .description(
        'Show recent pushes of a running control plane: which objects changed and where they come from, which proxies received the push, ' +
          'and which acknowledged or rejected it. Each replica has its own history, which begins when it starts.',
      ),
  )
    .option('--since <time>', `Pushes from this time on: ${timeFormats}`)
    .option('--until <time>', 'Pushes until this time, in the same forms')
    .option('--object <name>', 'Pushes with an object whose KIND/NAMESPACE/NAME contains this text')
    .option('--proxy <id>', 'Pushes to a proxy whose node ID contains this text')
    .option('--rejected', 'Pushes that a proxy rejected')
    .option('--endpoints', 'Also pushes of endpoints alone')
    .option('--all', 'All names of a push instead of the first ten of each list');
  const examples = [
    'pilot-discovery changes --since 14:00 --until 14:10',
    'pilot-discovery changes --rejected --from http://127.0.0.1:15014',
  ];
  return addFormatAndHelp(command, examples, 'history printed').action(async (flags: ChangesFlags) => {
    const { since, until, object, proxy, rejected, endpoints, all } = flags;
    for (const [flag, text] of [
      ['--since', since],
      ['--until', until],
    ] as const) {
      if (text !== undefined && parseTime(text, Date.now()) === undefined)
        throw optionError(flag, mustBe(timeFormats, text));
    }
    const filter = {
      since,
      until,
      object,
      proxy,
      ...(rejected && { rejected: '1' }),
      ...(endpoints && { endpoints: '1' }),
    };
    const query = new URLSearchParams(
      Object.entries(filter).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    print(
      await viewText<ChangesView>(flags, {
        path: `/debug/changes?${query}`,
        expected: 'the history of a control plane',
        lists: ['pushes', 'unpushedRejections'],
        text: (view) => changesText(view, all === true),
      }),
    );
  });
}

import { type Command, Option } from 'commander';
import { requestJson } from '../../../runtime/trace/program-request.ts';
import { addHelpSections } from '../help-sections.ts';

const localControlPlane = 'http://127.0.0.1:15014';

export interface RemoteFlags {
  readonly from: string;
  readonly format: 'text' | 'json';
}

export function addFromFlag(command: Command): Command {
  return command.option('--from <url>', 'Control plane to read from', localControlPlane);
}

/** @param description meaning of exit code 0 */
export function addFormatAndHelp(command: Command, examples: readonly string[], description: string): Command {
  command.addOption(new Option('--format <format>', 'Output format').choices(['text', 'json']).default('text'));
  return addHelpSections(command, {
    examples,
    exitCodes: [
      ['0', description],
      ['1', 'invalid flag, or no response from --from'],
    ],
  });
}

/** @throws ChartpilotError without a response */
export async function viewText<View>(
  { from, format }: RemoteFlags,
  path: string,
  text: (view: View) => string,
): Promise<string> {
  const view = (await requestJson(from, path, 'Check --from: a running control plane.')) as View;
  return format === 'json' ? `${JSON.stringify(view, null, 2)}\n` : text(view);
}

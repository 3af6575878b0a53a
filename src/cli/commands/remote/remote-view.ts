import { type Command, Option } from 'commander';
import { isObject } from '../../../runtime/json-object.ts';
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

export interface RemoteView<View> {
  readonly path: string;
  /** For errors, such as `the history of a control plane`. */
  readonly expected: string;
  /** Fields that are lists. The response of another program has no such fields. */
  readonly lists: readonly (keyof View & string)[];
  readonly text: (view: View) => string;
}

/** @throws ChartpilotError FLAG_INVALID with an invalid address, REQUEST_FAILED without the expected response */
export async function viewText<View>({ from, format }: RemoteFlags, view: RemoteView<View>): Promise<string> {
  const { path, expected, lists, text } = view;
  return await requestJson({
    ...{ from, path, expected },
    hint: 'Check --from: the HTTP port of a running control plane of this version (default 15014).',
    read: (json) => {
      for (const field of lists) {
        if (!isObject(json) || !Array.isArray(json[field])) throw new TypeError(`${field} must be a list`);
      }
      // The text is also composed for JSON, because it reads all fields.
      const viewAsText = text(json as View);
      return format === 'json' ? `${JSON.stringify(json, null, 2)}\n` : viewAsText;
    },
  });
}

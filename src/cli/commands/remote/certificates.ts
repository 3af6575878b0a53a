/** `pilot-discovery certificates`: which certificates of a mesh expire next. */
import { Command, Option } from 'commander';
import { certificatesText } from '../../../discovery/monitor/certificates/certificates-text.ts';
import type { CertificatesView } from '../../../discovery/monitor/certificates/known-certificates.ts';
import { standardOutput } from '../../../runtime/output/standard-streams.ts';
import { requestJson } from '../../../runtime/trace/program-request.ts';
import { wholeNumber } from '../../flags/whole-number.ts';
import { addHelpSections } from '../help-sections.ts';
import { localControlPlane } from './changes.ts';

interface CertificatesFlags {
  readonly from: string;
  readonly limit: number;
  readonly format: 'text' | 'json';
}

export function certificatesCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = new Command('certificates')
    .summary('Show which certificates expire next')
    .description(
      'Show the certificates that a running control plane knows, the next to expire first: those that it signed for workloads, its ' +
        'authority and trusted roots, its own ports, and Secrets of gateways. Certificates in files of workloads are known to their agents only.',
    )
    .option('--from <url>', 'Control plane to read from', localControlPlane)
    .option('--limit <n>', 'Number of certificates, up to 1000', wholeNumber, 50)
    .addOption(new Option('--format <format>', 'Output format').choices(['text', 'json']).default('text'));
  return addHelpSections(command, {
    examples: ['pilot-discovery certificates --limit 10'],
    exitCodes: [
      ['0', 'certificates printed'],
      ['1', 'invalid flag, or no response from --from'],
    ],
  }).action(async ({ from, limit, format }: CertificatesFlags) => {
    const path = `/debug/certificates?limit=${limit}`;
    const view = (await requestJson(from, path, 'Check --from: a running control plane.')) as CertificatesView;
    print(format === 'json' ? `${JSON.stringify(view, null, 2)}\n` : certificatesText(view));
  });
}

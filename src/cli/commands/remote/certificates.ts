import { Command } from 'commander';
import { certificatesText } from '../../../discovery/monitor/certificates/certificates-text.ts';
import type { CertificatesView } from '../../../discovery/monitor/certificates/known-certificates.ts';
import { standardOutput } from '../../../runtime/output/standard-streams.ts';
import { nonNegativeInteger } from '../../flags/non-negative-integer.ts';
import { addFormatAndHelp, addFromFlag, type RemoteFlags, viewText } from './remote-view.ts';

interface CertificatesFlags extends RemoteFlags {
  readonly limit: number;
}

export function certificatesCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = addFromFlag(
    new Command('certificates')
      .summary('Show which certificates expire next')
      .description(
        'Show the certificates that a running control plane knows, the next to expire first: those that it signed for workloads, its ' +
          'authority and trusted roots, its own ports, and Secrets of gateways. Certificates in files of workloads are known to their agents only.',
      ),
  ).option('--limit <n>', 'Number of certificates, up to 1000', nonNegativeInteger, 50);
  return addFormatAndHelp(command, ['pilot-discovery certificates --limit 10'], 'certificates printed').action(
    async (flags: CertificatesFlags) =>
      print(
        await viewText<CertificatesView>(flags, {
          path: `/debug/certificates?limit=${flags.limit}`,
          expected: 'the certificates of a control plane',
          lists: ['certificates', 'unread'],
          text: certificatesText,
        }),
      ),
  );
}

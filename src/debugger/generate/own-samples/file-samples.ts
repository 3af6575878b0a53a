import type { Samples } from '../samples.ts';
import { settings } from './envoy-samples.ts';

export const certWatcherSamples: Samples = {
  input: settings.watch,
  events: {
    'files.pending': [
      { missing: [], unreachable: [] },
      { missing: ['certs/tls.crt'], unreachable: [] },
      { missing: [], unreachable: ['certs/tls.crt: ENOTDIR: not a directory'] },
    ],
    'files.changed': [{ path: 'certs/tls.crt' }],
  },
  outcomes: {
    digest: [
      { output: { digest: 'digest-1', files: ['tls.crt', 'tls.key'], problems: [] } },
      { output: { digest: 'digest-2', files: ['tls.crt'], problems: ['tls.key is missing'] } },
      {
        output: {
          digest: 'digest-3',
          files: ['tls.crt', 'tls.key'],
          problems: [],
          notValidated: 'Envoy did not validate it',
        },
      },
      { error: 'the directory cannot be read' },
    ],
  },
  // Omits the length of the retry delays.
  relevant: ({ activeFiles, outdatedReadings, missing }) => [activeFiles, outdatedReadings, missing],
};

export const directorySamples: Samples = {
  input: { directory: 'certs' },
  events: {
    'files.changed': [{ path: 'certs/tls.crt' }],
    'watch.failed': [
      { reason: 'ENOSPC', knownHash: null },
      { reason: 'ENOSPC', knownHash: 'digest-1' },
    ],
  },
};

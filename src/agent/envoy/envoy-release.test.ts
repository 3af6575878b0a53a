import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { type LoggedEvent, recordingLog } from '../../../test/harness/recording-log.ts';
import { warnAboutVersion } from './envoy-release.ts';

async function warningsOf(script: string): Promise<LoggedEvent[]> {
  using folder = temporaryFolder();
  const path = join(folder.path, 'envoy');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  const { log, lines } = recordingLog();
  await warnAboutVersion(path, log);
  return lines;
}

const version = (release: string): string => `echo "$0  version: abc123/${release}/Clean/RELEASE/BoringSSL"`;

it.each([
  ['1.35.9', 'Envoy 1.35.9 is older than the supported versions 1.36 to 1.40'],
  ['1.41.0-dev', 'Envoy 1.41.0 is newer than the supported versions 1.36 to 1.40'],
])('warns about the unsupported Envoy %s and names supported versions', async (release, warning) => {
  expect(await warningsOf(version(release))).toEqual([
    {
      ...{ event: 'envoy.versionUnsupported', level: 'warn', path: expect.stringMatching(/envoy$/) },
      reason: expect.stringMatching(new RegExp(`^${warning}.*use a supported`)),
    },
  ]);
});

it.each([
  ['a supported version', version('1.36.0')],
  ['an unparsable version', version('main')],
  ['a program that fails', 'exit 3'],
  ['a program with endless output', 'yes'],
])('does not warn about %s', async (_, script) => {
  expect(await warningsOf(script)).toEqual([]);
});

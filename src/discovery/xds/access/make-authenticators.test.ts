import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { recordingLog } from '../../../../test/harness/recording-log.ts';
import type { CallPeer } from './authenticator.ts';
import { issueToken, localTokenFile, localTokenKey } from './local-tokens.ts';
import { makeAuthenticators } from './make-authenticators.ts';

const hourMs = 3_600_000;

function peerWith(token: string): CallPeer {
  const metadata = (name: string): string[] => (name === 'authorization' ? [`Bearer ${token}`] : []);
  return { host: '10.0.0.1', address: '10.0.0.1:4711', metadata, certificate: undefined };
}

test('the authenticators log one line with a hint when a clock that was set back causes tokens to be rejected', async () => {
  const stateDirectory = mkdtempSync(join(tmpdir(), 'authenticators-'));
  onTestFinished(() => rmSync(stateDirectory, { recursive: true }));
  const { log: logger, lines } = recordingLog();
  const [, localToken] = await makeAuthenticators(
    {
      ...{ authenticates: true, jwtRule: '', authority: { stateDirectory }, trustedGateways: [] },
      ...{ clusterId: 'Kubernetes', clusterAliases: {} },
    },
    { logger, mesh: () => ({ trustDomain: 'cluster.local', trustDomainAliases: [] }), revocations: undefined },
  );
  const key = localTokenKey(join(stateDirectory, localTokenFile));
  const order = { namespace: 'shop', serviceAccount: 'cart', audience: 'istio-ca', ttlSeconds: 7_200 };
  const earlyToken = await issueToken(key, order, new Date(Date.now() + hourMs));
  for (let i = 0; i < 3; i++) {
    expect(await localToken!.authenticate(peerWith(earlyToken))).toEqual({
      failure: expect.stringContaining('check the clocks of this host and of the issuer'),
    });
  }
  expect(lines).toMatchObject([
    { event: 'token.notYetValid', authenticator: 'local token', issuer: 'pilot-discovery', leewaySeconds: 60 },
  ]);
  const current = await issueToken(key, order, new Date());
  expect(await localToken!.authenticate(peerWith(current))).toHaveProperty('identities');
});

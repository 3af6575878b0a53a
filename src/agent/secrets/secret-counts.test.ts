import { createPrivateKey, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { AgentMetrics } from '../status/agent-metrics.ts';
import { SecretCounts } from './secret-counts.ts';
import { SecretVault } from './secret-vault.ts';

test('num_outgoing_requests, num_failed_outgoing_requests, num_outgoing_retries and outgoing_latency count calls to the authority (agent §6.5)', () => {
  const counts = new SecretCounts(new SecretVault());
  counts.countCall(20, true);
  counts.countCall(700, false);
  counts.countCall(20_000, true);
  const text = counts.text();
  for (const line of [
    'istio_agent_num_outgoing_requests{request_type="csr"} 3',
    'istio_agent_num_failed_outgoing_requests{request_type="csr"} 1',
    'istio_agent_num_outgoing_retries{request_type="csr"} 1',
    'istio_agent_outgoing_latency_bucket{request_type="csr",le="50"} 1',
    'istio_agent_outgoing_latency_bucket{request_type="csr",le="1000"} 2',
    'istio_agent_outgoing_latency_bucket{request_type="csr",le="+Inf"} 3',
    'istio_agent_outgoing_latency_sum{request_type="csr"} 20720',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});

test('cert_expiry_seconds exists exactly for each stored certificate, with any name (agent §6.5)', () => {
  const vault = new SecretVault();
  const { certificate: chain, privateKey } = createAuthority('mesh').issue(['web']);
  const key = createPrivateKey(privateKey);
  const endsAtMs = Date.parse(new X509Certificate(chain).validTo);
  vault.keepCertificate('default', { chain, key });
  vault.keepCertificate('file-cert:a"\n~b', { chain, key });
  vault.keepCertificate('none', { chain: 'x', key });
  const lines = new SecretCounts(vault, () => endsAtMs - 90_500).text().split('\n');
  expect(lines.filter((line) => line.startsWith('istio_agent_cert_expiry_seconds'))).toEqual([
    'istio_agent_cert_expiry_seconds{resource_name="default"} 90',
    'istio_agent_cert_expiry_seconds{resource_name="file-cert:a\\"\\n~b"} 90',
  ]);
});

test('missingCertificate is the last failure until the workload has a certificate', () => {
  const vault = new SecretVault();
  const counts = new SecretCounts(vault);
  expect(counts.missingCertificate).toBe('not obtained yet');
  counts.identityFailed('requested lifetime is too long');
  expect(counts.missingCertificate).toBe('requested lifetime is too long');
  const { certificate: chain, privateKey } = createAuthority('mesh').issue(['web']);
  vault.keepCertificate('other', { chain, key: createPrivateKey(privateKey) });
  expect(counts.missingCertificate).toBe('requested lifetime is too long');
  vault.keepCertificate('default', { chain, key: createPrivateKey(privateKey) });
  expect(counts.missingCertificate).toBeUndefined();
});

test('num_file_secret_failures_total and num_file_watcher_failures_total count failures (agent §6.5)', async () => {
  const metrics = new AgentMetrics();
  const counts = new SecretCounts(new SecretVault());
  metrics.withSecrets(counts);
  counts.countFileFailure();
  const event = { type: 'watch.failed', reason: 'EMFILE' };
  metrics.observe({ kind: 'event', from: 'directory', to: 'directory-0', event, seq: 0, t: 0 });
  const lines = (await metrics.text()).split('\n');
  expect(lines).toContain('istio_agent_num_file_secret_failures_total 1');
  expect(lines).toContain('istio_agent_num_file_watcher_failures_total 1');
});

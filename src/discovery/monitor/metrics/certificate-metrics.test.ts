import { status } from '@grpc/grpc-js';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { IssuanceCounts } from '../../ca/issuing/issuance-counts.ts';
import { addCertificateMetrics } from './certificate-metrics.ts';

async function samples(registry: Registry): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]));
}

test('certificate metrics contain no expiry series without an authority', async () => {
  const registry = new Registry();
  let expiryDates: { root: Date; chain: Date } | undefined;
  addCertificateMetrics(registry, { expiry: () => expiryDates, issuance: new IssuanceCounts() });
  expect(Object.keys(await samples(registry)).filter((name) => name.includes('expiry'))).toEqual([]);
  const chain = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000);
  expiryDates = { chain, root: new Date(Date.now() - 10_000) };
  const metricSamples = await samples(registry);
  expect(metricSamples.citadel_server_cert_chain_expiry_timestamp).toBe(chain.getTime() / 1_000);
  expect(metricSamples.citadel_server_cert_chain_expiry_seconds).toBeGreaterThan(3_500);
  expect(metricSamples.citadel_server_root_cert_expiry_seconds).toBeLessThanOrEqual(-10);
});

test('certificate metrics count requests by outcome', async () => {
  const registry = new Registry();
  const issuance = new IssuanceCounts();
  addCertificateMetrics(registry, { expiry: () => undefined, issuance });
  for (const code of [
    status.OK,
    status.OK,
    status.UNAUTHENTICATED,
    status.PERMISSION_DENIED,
    status.INVALID_ARGUMENT,
  ]) {
    issuance.recordResponse(code);
  }
  expect(await samples(registry)).toEqual({
    citadel_server_csr_count: 5,
    citadel_server_success_cert_issuance_count: 2,
    citadel_server_authentication_failure_count: 2,
    'citadel_server_csr_sign_err_count{error="INVALID_ARGUMENT"}': 1,
  });
});

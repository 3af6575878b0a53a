import { Gauge, type Registry } from 'prom-client';
import type { IssuanceCounts } from '../../ca/issuing/issuance-counts.ts';
import { readCounter } from './cheap-metrics.ts';

export interface CertificateMetricsOptions {
  /** `undefined` while nothing can be signed. */
  readonly expiry: () => { readonly root: Date; readonly chain: Date } | undefined;
  readonly issuance: IssuanceCounts;
}

export function addCertificateMetrics(registry: Registry, { expiry, issuance }: CertificateMetricsOptions): void {
  const addExpiry = (certificateKind: 'root' | 'chain', name: string, subject: string): void => {
    const add = (suffix: string, help: string, value: (expiry: Date) => number): void => {
      const gauge: Gauge = new Gauge({
        ...{ name: `citadel_server_${name}_expiry_${suffix}`, help, registers: [registry] },
        collect: () => {
          const expiryDate = expiry()?.[certificateKind];
          // Without an authority, the metric has no series, because 0 would mean expired.
          if (expiryDate === undefined) gauge.remove();
          else gauge.set(value(expiryDate));
        },
      });
    };
    add('timestamp', `Unix time, in seconds, at which ${subject} expires`, (end) => end.getTime() / 1_000);
    add('seconds', `Seconds until ${subject} expires; negative: it has expired`, (end) =>
      Math.floor((end.getTime() - Date.now()) / 1_000),
    );
  };
  addExpiry('root', 'root_cert', 'the root certificate of the authority that signs');
  addExpiry('chain', 'cert_chain', 'the first certificate of the chain that signs');
  const add = (name: string, help: string, value: () => number): void =>
    readCounter(registry, { name: `citadel_server_${name}`, help }, () => [{ labels: {}, value: value() }]);
  add('csr_count', 'Certificate requests', () => issuance.requests);
  add('success_cert_issuance_count', 'Certificates issued', () => issuance.issuedCount);
  add(
    'authentication_failure_count',
    'Certificate requests of unknown callers, or of callers of another mesh',
    () => issuance.unauthenticated,
  );
  readCounter(
    registry,
    {
      name: 'citadel_server_csr_sign_err_count',
      help: 'Certificate requests of known callers that failed, by gRPC status',
      labelNames: ['error'],
    },
    () => [...issuance.rejectedByCode].map(([error, value]) => ({ labels: { error }, value })),
  );
}

import { peersOf } from '../peers.ts';
import type { NamesAvailable } from './dns-protocol.ts';
import type { GrpcBootstrapWritten } from './grpc-bootstrap-protocol.ts';
import type { BinaryChanged, BinaryRejected, ConfigChanged, ConfigRejected, ServingReport } from './protocol.ts';
import type { CertificateServed, TrustBundleReceived, TrustBundleServed } from './secrets-protocol.ts';

/** Actors of the agent that receive events by system ID. */
export const peer = peersOf<{
  supervisor: ConfigChanged | ConfigRejected | BinaryChanged | BinaryRejected;
  status: ServingReport | NamesAvailable | GrpcBootstrapWritten;
  secrets: TrustBundleReceived;
  'xds-proxy': TrustBundleServed | CertificateServed;
}>();

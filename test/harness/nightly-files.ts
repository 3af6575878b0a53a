/** A test file that only `npm run test:nightly` runs. */
export interface NightlyFile {
  readonly file: string;
  /** Files of `npm test` that fail if the same code is wrong. */
  readonly coveredBy: readonly string[];
}

/** Long forms of what shorter tests check. Together they take a tenth of the processor time of a run. */
export const nightlyFiles: readonly NightlyFile[] = [
  {
    file: 'test/cluster/convergence.test.ts',
    coveredBy: [
      'test/cluster/informer.test.ts',
      'test/cluster/applied-changes.test.ts',
      'test/model/random-cluster.test.ts',
    ],
  },
  {
    file: 'test/cluster/stopped-replicas.test.ts',
    coveredBy: ['test/cluster/leader.test.ts', 'test/cluster/two-replicas.test.ts', 'test/model/leader-random.test.ts'],
  },
  {
    file: 'test/cluster/tenant-fills-cluster.test.ts',
    coveredBy: [
      'src/discovery/kubernetes/readers/cluster-source-limits.test.ts',
      'src/discovery/kubernetes/readers/stored-objects.test.ts',
      'test/tenants/one-namespace.alone.test.ts',
    ],
  },
  {
    file: 'test/e2e/calibration.test.ts',
    coveredBy: ['test/e2e/generated.test.ts', 'test/generated/simulation.test.ts'],
  },
  {
    file: 'test/e2e/churn.test.ts',
    coveredBy: ['src/discovery/push/incremental.property.test.ts', 'test/e2e/changes-without-loss.test.ts'],
  },
  {
    file: 'test/e2e/debugger-firefox.test.ts',
    coveredBy: ['test/e2e/debugger-page.test.ts', 'test/e2e/debugger-views.test.ts'],
  },
  { file: 'test/e2e/pods.test.ts', coveredBy: ['test/e2e/standard-metrics.test.ts'] },
  {
    file: 'test/e2e/proxyless-grpc-rotation.test.ts',
    coveredBy: ['test/e2e/proxyless-grpc-servers.test.ts', 'test/e2e/proxyless-grpc-agent.test.ts'],
  },
  {
    file: 'test/e2e/reconnect-while-draining.test.ts',
    coveredBy: ['test/model/reconnect-while-draining.test.ts'],
  },
  {
    file: 'test/e2e/reconnect-while-warming.test.ts',
    coveredBy: ['test/model/reconnect-while-warming.test.ts'],
  },
  {
    file: 'test/e2e/root-rotation.test.ts',
    coveredBy: [
      'test/model/explore-identity.test.ts',
      'test/model/root-rotation.property.test.ts',
      'test/cluster/authority-secret.test.ts',
    ],
  },
  { file: 'test/e2e/sidecar-agent-replaced.test.ts', coveredBy: ['test/e2e/agent-replaced.test.ts'] },
  {
    file: 'test/cluster/restart.test.ts',
    coveredBy: [
      'test/cluster/transport.test.ts',
      'test/cluster/applied-changes.test.ts',
      'test/model/explore-cluster.test.ts',
    ],
  },
  {
    file: 'test/e2e/istio-nftables.test.ts',
    coveredBy: ['src/iptables/rules.test.ts', 'test/e2e/iptables-cleanup.test.ts', 'test/e2e/istio-iptables.test.ts'],
  },
  {
    file: 'test/e2e/mutual-tls-switched.test.ts',
    coveredBy: ['test/e2e/features/peer-authentication.test.ts', 'test/e2e/changes-without-loss.test.ts'],
  },
  {
    file: 'test/e2e/reconnect.test.ts',
    coveredBy: ['test/cluster/two-replicas.test.ts', 'test/model/sent-assignments.test.ts'],
  },
  { file: 'test/e2e/replay.test.ts', coveredBy: ['test/model/replay.test.ts', 'test/e2e/tarball.test.ts'] },
  {
    file: 'test/load/returning-nodes.test.ts',
    coveredBy: ['src/discovery/xds/admission/ads-admission.test.ts', 'test/model/stream-admission.test.ts'],
  },
  { file: 'test/node/node.test.ts', coveredBy: ['test/node/mesh/mesh.test.ts'] },
  {
    file: 'test/e2e/proxyless-grpc-bootstrap.test.ts',
    coveredBy: ['test/model/agent/grpc-bootstrap.test.ts', 'test/e2e/proxyless-grpc-servers.test.ts'],
  },
];

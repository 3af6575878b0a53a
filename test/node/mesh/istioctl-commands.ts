/** Commands of istioctl with a mesh, in the row order of docs/istioctl.md. */
import { expect } from 'vitest';

/** Pods and namespaces that the arguments of a command refer to. */
export interface IstioctlWorld {
  readonly namespace: string;
  /** Pods `NAME.NAMESPACE` with sidecars; `server` has a VirtualService. */
  readonly client: string;
  readonly server: string;
  /** A proxy of the replica that istioctl queries first. */
  readonly nearby: string;
  /** The replica of the control plane that serves `client`. */
  readonly istiod: string;
  readonly folder: string;
}

export interface IstioctlOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface IstioctlCommand {
  /** The first column of its row in docs/istioctl.md, without `istioctl`. */
  readonly row: string;
  readonly args: (world: IstioctlWorld) => readonly string[];
  /** Checks the output; the exit code is 0 unless `code` is set. */
  readonly check: (output: IstioctlOutput, world: IstioctlWorld) => void;
  readonly code?: number;
}

const split = (text: string): string[] => text.split(' ');
const client =
  (command: string) =>
  ({ client }: IstioctlWorld) => [...split(command), client];
const fixed = (command: string) => () => split(command);
/** Expects each of these in standard output. */
const shows =
  (...patterns: (string | RegExp | ((world: IstioctlWorld) => string))[]) =>
  ({ stdout }: IstioctlOutput, world: IstioctlWorld): void => {
    for (const pattern of patterns)
      expect(stdout).toMatch(typeof pattern === 'function' ? new RegExp(pattern(world)) : pattern);
  };
const ctrlz = '--ctrlz_port 15014';

export const istioctlCommands: readonly IstioctlCommand[] = [
  {
    row: 'version',
    args: fixed('version -o json'),
    check({ stdout }) {
      const { meshVersion, dataPlaneVersion } = JSON.parse(stdout);
      for (const { Info } of meshVersion) expect(Info).toMatchObject({ version: '0.1.0', status: 'unknown' });
      expect(meshVersion.length).toBeGreaterThan(0);
      expect(dataPlaneVersion).toContainEqual(expect.objectContaining({ IstioVersion: '0.1.0', Type: 'sidecar' }));
    },
  },
  {
    row: 'proxy-status',
    args: fixed('proxy-status'),
    check: (output, world) =>
      shows(new RegExp(`^${world.client} +Kubernetes +istiod-\\S+ +0\\.1\\.0 +5 \\(CDS,LDS,EDS,RDS,ECDS\\)`, 'm'))(
        output,
        world,
      ),
  },
  {
    row: 'proxy-status POD',
    args: ({ nearby }) => ['proxy-status', nearby],
    check: shows('Clusters Match', 'Listeners Match', 'Routes Match'),
  },
  {
    row: 'proxy-config all POD',
    args: client('proxy-config all'),
    check: shows('Istio Version: 0.1.0', 'BlackHoleCluster'),
  },
  {
    row: 'proxy-config bootstrap POD',
    args: client('proxy-config bootstrap'),
    check: shows('"bootstrap"', 'ISTIO_VERSION'),
  },
  {
    row: 'proxy-config cluster POD',
    args: client('proxy-config cluster'),
    check: shows(({ namespace }) => `server.${namespace}.svc.cluster.local +80 +- +outbound +EDS`),
  },
  {
    row: 'proxy-config listener POD',
    args: client('proxy-config listener'),
    check: shows(/ 15006 /, / 15001 /, /Route: 80/),
  },
  {
    row: 'proxy-config route POD',
    args: client('proxy-config route'),
    check: shows(({ namespace }) => `server.${namespace}.svc.cluster.local:80`),
  },
  {
    row: 'proxy-config endpoint POD',
    args: client('proxy-config endpoint'),
    check: shows(({ namespace }) => `HEALTHY +OK +outbound\\|80\\|\\|server.${namespace}`),
  },
  { row: 'proxy-config eds POD', args: client('proxy-config eds'), check: shows(/HEALTHY +outbound\|80\|\|/) },
  {
    row: 'proxy-config secret POD',
    args: client('proxy-config secret'),
    check: shows(/^default +Cert Chain +ACTIVE +true/m, /^ROOTCA +CA +ACTIVE +true/m),
  },
  {
    row: 'proxy-config rootca-compare POD POD',
    args: ({ client, server }) => [...split('proxy-config rootca-compare'), client, server],
    code: 1,
    check: ({ stderr }) => expect(stderr).toContain('failed to decode inlinebytes'),
  },
  { row: 'proxy-config log POD', args: client('proxy-config log --level http:debug'), check: shows('http: debug') },
  {
    row: 'proxy-config ecds POD',
    args: client('proxy-config ecds'),
    code: 1,
    check: ({ stderr }) => expect(stderr).toContain('EcdsConfigDump'),
  },
  {
    row: 'x internal-debug syncz',
    args: fixed('x internal-debug syncz --all'),
    check: shows(({ client }) => `"proxy": "${client}"`),
  },
  { row: 'x internal-debug configz', args: fixed('x internal-debug configz'), check: shows('"VirtualService"') },
  {
    row: 'x internal-debug connections',
    args: fixed('x internal-debug connections --all'),
    check: shows(/"totalClients": [1-9]/),
  },
  {
    row: 'x describe pod POD',
    args: client('x describe pod'),
    check: shows(({ namespace }) => `Service: client.${namespace}`, 'Workload mTLS mode: PERMISSIVE'),
  },
  {
    row: 'x describe service SERVICE',
    args: ({ namespace }) => [...split('x describe service'), `server.${namespace}`],
    check: shows(({ namespace }) => `Service: server.${namespace}`),
  },
  {
    row: 'analyze',
    args: ({ namespace }) => ['analyze', '-n', namespace],
    check: ({ stdout, stderr }) => {
      expect(stdout + stderr).toContain('No validation issues found when analyzing namespace');
      expect(stderr).not.toContain('panic');
    },
  },
  {
    row: 'validate -f FILE',
    args: ({ folder }) => ['validate', '-f', `${folder}/virtual-service.yaml`],
    check: ({ stdout, stderr }) => expect(stdout + stderr).toContain('is valid'),
  },
  { row: 'x authz check POD', args: client('x authz check'), check: shows(/^ACTION +AuthorizationPolicy +RULES/) },
  {
    row: 'x envoy-stats POD --output prom-merged',
    args: client('x envoy-stats --output prom-merged'),
    check: shows('envoy_server_live'),
  },
  {
    row: 'x precheck',
    args: fixed('x precheck'),
    check: ({ stdout, stderr }) => expect(stdout + stderr).toContain('No issues found'),
  },
  {
    row: 'bug-report',
    args: ({ namespace, folder }) => [
      'bug-report',
      '--dir',
      `${folder}/report`,
      '--include',
      namespace,
      '--timeout',
      '60s',
    ],
    check: ({ stdout, stderr }) => expect(stdout + stderr).toMatch(/bug-report\.tar\.gz|bug-report\.tgz/),
  },
  {
    row: 'create-remote-secret',
    args: fixed('create-remote-secret --name other'),
    check: shows('istio-remote-secret-other', 'istio/multiCluster: "true"'),
  },
  {
    row: 'tag set, list, remove',
    args: fixed('tag set prod --revision default --overwrite'),
    check: shows('Revision tag "prod" created'),
  },
  { row: 'tag set, list, remove', args: fixed('tag list'), check: shows(/^prod +default/m) },
  { row: 'tag set, list, remove', args: fixed('tag remove prod -y'), check: shows('Revision tag prod removed') },
  {
    row: 'kube-inject -f FILE',
    args: ({ folder }) => ['kube-inject', '-f', `${folder}/deployment.yaml`],
    check: shows('name: istio-proxy', 'name: istio-init'),
  },
  {
    row: 'x check-inject',
    args: ({ namespace }) => [...split('x check-inject deployment/client -n'), namespace],
    check: shows(/istio-sidecar-injector +default +\S*✔/),
  },
  { row: 'x injector list', args: fixed('x injector list'), check: shows('istio-sidecar-injector') },
  {
    row: 'admin log',
    args: fixed(`admin log ${ctrlz} --level ads:debug`),
    check: ({ stderr }) => expect(stderr).toBe(''),
  },
  {
    row: 'admin log',
    args: ({ istiod }) => split(`admin log ${istiod.split('.')[0]} ${ctrlz}`),
    check: shows(/^ads .* (debug|info) +none/m),
  },
  { row: 'admin log', args: fixed(`admin log ${ctrlz} --reset`), check: ({ stderr }) => expect(stderr).toBe('') },
];

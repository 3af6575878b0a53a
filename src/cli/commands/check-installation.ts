import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { checkCluster } from '../../discovery/installation/check-cluster.ts';
import { type InstallationPhase, reportAsJson, reportAsText } from '../../discovery/installation/findings.ts';
import type { ClusterAccess } from '../../discovery/kubernetes/access/cluster-access.ts';
import { inClusterAccess, isInCluster } from '../../discovery/kubernetes/access/in-cluster.ts';
import { kubeconfigFile } from '../../discovery/kubernetes/access/kubeconfig.ts';
import { Http2ApiServer } from '../../discovery/kubernetes/transport/http2-api-server.ts';
import { isNamespace } from '../../model/fields/names.ts';
import { mustBe } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import { setOutputFailureCode } from '../../runtime/output/standard-streams.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import { addHelpSections } from './help-sections.ts';
import { type CommandStreams, processStreams } from './validate.ts';

interface CheckFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace: string;
  readonly revision: string;
  readonly phase?: 'before' | 'after';
  readonly output: 'text' | 'json';
}

const exitCodes = { complete: 0, incomplete: 1, unreadable: 2, unwritten: 3 } as const;
/** Timeout for all requests together. */
const limitMs = 120_000;
const phases: Readonly<Record<'before' | 'after', InstallationPhase>> = {
  before: 'before installation',
  after: 'after installation',
};

export function checkInstallationCommand({ out, error }: CommandStreams = processStreams): Command {
  const command = new Command('check')
    .summary('Check a cluster before and after the installation')
    .description(
      'Report what is missing in a Kubernetes cluster. Before the installation: version, permissions of the user, definitions of ' +
        "Istio's kinds and of the Gateway API, nodes, webhooks of other meshes, admission of sidecars. After it: replicas, Service, " +
        'webhooks and their CA bundles, namespaces of the mesh, pods without a sidecar, versions of sidecars, injection of a pod. ' +
        'Pods are created as a dry run; nothing in the cluster changes. Each finding names the next step.',
    )
    .option('--kubeconfig <file>', 'Cluster to check (default $KUBECONFIG, the cluster of this pod, ~/.kube/config)')
    .option('--context <name>', 'Context of the kubeconfig (default its current one)')
    .addOption(
      new Option('-n, --namespace <namespace>', 'Namespace of the control plane')
        .default('istio-system')
        .argParser(namespaceOf),
    )
    .option('--revision <name>', 'Revision of the control plane (default: the default one)', '')
    .addOption(
      new Option('--phase <phase>', 'What to check (default: after, if the control plane is there)').choices([
        'before',
        'after',
      ]),
    )
    .addOption(new Option('-o, --output <format>', 'Output format').choices(['text', 'json']).default('text'));
  return addHelpSections(command, {
    examples: ['pilot-discovery check', 'pilot-discovery check --phase before -o json'],
    environment: [['KUBECONFIG', 'Kubeconfig, without --kubeconfig; of a list the first file is read']],
    exitCodes: [
      ['0', 'no finding is an error; there may be warnings and parts that were not checked'],
      ['1', 'a finding is an error, or a flag is invalid'],
      ['2', 'the cluster cannot be read'],
      ['3', 'the report cannot be written'],
    ],
  }).action(async (flags: CheckFlags) => {
    setOutputFailureCode(exitCodes.unwritten);
    process.exitCode = await check(flags, { out, error });
  });
}

function namespaceOf(value: string): string {
  if (isNamespace(value)) return value;
  throw new InvalidArgumentError(mustBe('a namespace', value).message);
}

async function check(flags: CheckFlags, { out, error }: CommandStreams): Promise<number> {
  const { namespace, revision, phase, output } = flags;
  let server: Http2ApiServer | undefined;
  try {
    server = new Http2ApiServer(accessOf(flags));
    const report = await checkCluster(server, {
      ...{ namespace, revision, signal: AbortSignal.timeout(limitMs), now: Date.now() },
      ...(phase !== undefined && { phase: phases[phase] }),
    });
    out(output === 'json' ? reportAsJson(report) : reportAsText(report));
    return report.findings.some(({ level }) => level === 'error') ? exitCodes.incomplete : exitCodes.complete;
  } catch (failure) {
    error(`pilot-discovery: cluster cannot be read: ${visibleLine(messageOf(failure))}\n`);
    return exitCodes.unreadable;
  } finally {
    server?.close();
  }
}

function accessOf({ kubeconfig, context }: CheckFlags): ClusterAccess {
  const [first = ''] = (process.env.KUBECONFIG ?? '').split(delimiter);
  if (kubeconfig === undefined && first === '' && isInCluster(process.env)) return inClusterAccess(process.env);
  return kubeconfigFile(kubeconfig ?? (first || join(homedir(), '.kube/config')), context);
}

/** The check never writes to the cluster. */
import * as E from 'fp-ts/lib/Either.js';
import { injectorMapName } from '../../injection/settings.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import { checkAfterInstallation, membersOf, planeName } from './after-installation.ts';
import {
  checkBeforeInstallation,
  type Installation,
  requiredPermissions,
  versionFinding,
} from './before-installation.ts';
import { FactReader } from './cluster-facts.ts';
import { injectionFinding, ordinaryPod, redirectingPod, redirectionFinding } from './dry-run.ts';
import type { ClusterReport, InstallationPhase } from './findings.ts';
import { injectionConflicts } from './injection-conflicts.ts';

export interface CheckOptions extends Installation {
  /** Default: `after` if the control plane's Deployment exists. */
  readonly phase?: InstallationPhase;
  readonly signal: AbortSignal;
  readonly now: number;
}

/** Each dry run calls the cluster's webhooks. */
const maxDryRuns = 10;

/** @throws ApiError if nothing can be read from the cluster */
export async function checkCluster(server: Pick<ApiServer, 'request'>, options: CheckOptions): Promise<ClusterReport> {
  const { namespace, revision, signal, now } = options;
  const reader = new FactReader(server, signal);
  const facts = await reader.cluster(namespace);
  const isInstalled =
    E.isRight(facts.deployments) &&
    facts.deployments.right.some(({ metadata }) => metadata.name === planeName(revision));
  const phase = options.phase ?? (isInstalled ? 'after installation' : 'before installation');
  const members = membersOf(facts, options);
  const commonFields = { phase, namespace, revision };
  if (phase === 'before installation') {
    const missingPermissions = await reader.missingRights(requiredPermissions(options));
    const dryRunNamespaces = members.length > 0 ? members.slice(0, maxDryRuns) : ['default'];
    const admittedPods = await Promise.all(
      dryRunNamespaces.map(async (dryRunNamespace) =>
        redirectionFinding(dryRunNamespace, await reader.admittedPod(dryRunNamespace, redirectingPod())),
      ),
    );
    return {
      ...commonFields,
      findings: [...checkBeforeInstallation(facts, missingPermissions, options), ...admittedPods],
    };
  }
  const [installedFacts, ...pods] = await Promise.all([
    reader.readInstalledFacts(namespace, {
      service: planeName(revision),
      injector: injectorMapName(revision),
      members,
    }),
    ...members
      .slice(0, maxDryRuns)
      .map(async (member) => [member, await reader.admittedPod(member, ordinaryPod())] as const),
  ]);
  const admittedPods = new Map(pods);
  return {
    ...commonFields,
    findings: [
      versionFinding(facts.version),
      ...checkAfterInstallation(facts, { ...installedFacts, admittedPods }, options, now),
      ...pods.map(([member, pod]) => injectionFinding(member, pod)),
      ...injectionConflicts(facts, options),
    ],
  };
}

import type { Config } from '../../../model/config/config.ts';
import type { AuthorizationPolicy } from '../../../model/kinds/policies/authorization-policy.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { namespacesOf } from './client-sources.ts';

export const checkServiceAccounts: ConfigCheck = function* (sources) {
  if (sources.configs.AuthorizationPolicy.length === 0) return;
  const accounts = yield* accountsOf(sources);
  const namespaces = namespacesOf(sources);
  for (const config of sources.configs.AuthorizationPolicy) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const { account, field } of accountsNamedIn(config, sources))
      yield warningOf(config, account, field, { accounts, namespaces }, sources);
  }
};

function* accountsOf({ configs, context }: CheckSources): Generator<undefined, ReadonlySet<string>> {
  const serviceAccounts = new Set<string>();
  for (const { namespace, spec } of configs.Pod) {
    yield undefined;
    serviceAccounts.add(`${namespace}/${spec.spec.serviceAccountName || 'default'}`);
  }
  for (const { namespace, spec } of configs.WorkloadEntry) {
    yield undefined;
    if (spec.serviceAccount) serviceAccounts.add(`${namespace}/${spec.serviceAccount}`);
  }
  for (const service of context.services) {
    yield undefined;
    for (const { serviceAccount } of context.endpointsOf(service.hostname, service.namespace)) {
      const [, account] = identity.exec(serviceAccount) ?? [];
      if (account !== undefined) serviceAccounts.add(account.replace('/sa/', '/'));
    }
  }
  return serviceAccounts;
}

const identity = /\/ns\/([^/]+\/sa\/[^/]+)$/;

interface NamedAccount {
  /** Account as `namespace/name`. */
  readonly account: string;
  readonly field: string;
}

function* accountsNamedIn(
  { namespace, spec }: Config<AuthorizationPolicy>,
  { context: { mesh } }: CheckSources,
): Generator<NamedAccount> {
  const domains = new Set([mesh.trustDomain, 'cluster.local', ...mesh.trustDomainAliases]);
  for (const [index, { from = [] }] of spec.rules.entries()) {
    for (const [sourceIndex, source] of from.entries()) {
      const path = `spec.rules[${index}].from[${sourceIndex}].source`;
      for (const [textIndex, text] of (source.principals ?? []).entries()) {
        const [, domain = '', account = ''] = /^([^/*]+)\/ns\/([^/*]+\/sa\/[^/*]+)$/.exec(text) ?? [];
        // Workloads of other trust domains are unknown.
        if (domains.has(domain))
          yield { account: account.replace('/sa/', '/'), field: `${path}.principals[${textIndex}]` };
      }
      for (const [textIndex, text] of (source.serviceAccounts ?? []).entries()) {
        if (text.includes('*')) continue;
        yield {
          account: text.includes('/') ? text : `${namespace}/${text}`,
          field: `${path}.serviceAccounts[${textIndex}]`,
        };
      }
    }
  }
}

interface KnownClients {
  readonly accounts: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string> | undefined;
}

function warningOf(
  config: Config,
  account: string,
  field: string,
  { accounts, namespaces }: KnownClients,
  { knownObjects }: CheckSources,
): ConfigWarning | undefined {
  const namespace = account.slice(0, account.indexOf('/'));
  const isComplete = knownObjects.isComplete('Pod', namespace) || namespaces?.has(namespace) === false;
  if (accounts.has(account) || !isComplete) return undefined;
  return {
    ...{ code: 'SERVICE_ACCOUNT_NOT_FOUND', config, field },
    message: `no workload runs as service account ${account}, so no request matches: correct the name (serviceAccountName of the pods)`,
  };
}

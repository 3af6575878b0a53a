/** Warnings across objects that follow from what connected proxies request and are sent. */
import type { Config } from '../../model/config/config.ts';
import type { EnvoyFilter, EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import { patchSetOf, patchStatus, wasTried } from '../../networking/index.ts';
import type { PatchSet } from '../../networking/patches/patch-set.ts';
import { parseCredentialName } from '../../networking/secrets/credential-name.ts';
import type { ConfigWarning } from '../references/config-warning.ts';
import { absentCredentialText, credentialPlace } from '../references/credentials.ts';
import { hasOtherDelivery, unappliedText } from '../references/unapplied-patches.ts';
import type { StatusSources } from './find-diagnostics.ts';
import { unservedCredentials } from './unserved-credentials.ts';

export interface ProxyWarning extends ConfigWarning {
  /** Another replica may know that it is otherwise. */
  readonly isOfReplica?: true;
  /** The author of the object must not learn of it: the status of the object does not report it. */
  readonly isHidden?: true;
}

type ProxySources = Pick<StatusSources, 'context' | 'configs' | 'proxies'>;

/** Yields `undefined` after each object, proxy or server without a warning. */
export function* findProxyWarnings(sources: ProxySources): Generator<ProxyWarning | undefined> {
  yield* absentCredentials(sources);
  yield* patchesWithoutEffect(sources);
}

/** Objects that a connected gateway requests, that its client may have, and that the API server does not have. */
function* absentCredentials({ configs, proxies }: ProxySources): Generator<ProxyWarning | undefined> {
  for (const unserved of unservedCredentials(proxies)) {
    yield undefined;
    if (unserved?.cause !== 'absent') continue;
    const asked = parseCredentialName(unserved.name, unserved.namespace)!;
    for (const { gateway, index, mayKnow } of unserved.users) {
      const place = credentialPlace(gateway, index, configs);
      if (place === undefined) continue;
      yield {
        ...{ code: 'CREDENTIAL_NOT_FOUND', ...place },
        message: absentCredentialText(
          `${asked.kind} ${asked.namespace}/${asked.name}`,
          'create it, or correct the name',
        ),
        ...(!mayKnow && { isHidden: true }),
      };
    }
  }
}

/**
 * Patches that were tried at connected proxies and matched nothing at any. Proxies that are not yet served from the latest context are waited
 * for, and so are patches of resources that no proxy has requested.
 */
function* patchesWithoutEffect({ context, configs, proxies }: ProxySources): Generator<ProxyWarning | undefined> {
  const waiting = new Map<EnvoyPatch, { readonly config: Config<EnvoyFilter>; readonly index: number }>();
  for (const config of configs.EnvoyFilter) {
    yield undefined;
    for (const [index, patch] of config.spec.configPatches.entries()) {
      const { applied, problem } = patchStatus(patch);
      // A fact, whatever other replicas know.
      if (problem !== undefined) yield patchWarning(config, index, `could not be applied at a proxy: ${problem}`);
      else if (!applied && wasTried(patch) && !hasOtherDelivery(patch)) waiting.set(patch, { config, index });
    }
  }
  if (waiting.size === 0) return;
  const counts = new Map<EnvoyPatch, number>();
  const seen = new Map<unknown, ReadonlySet<EnvoyPatch>>();
  for (const served of proxies) {
    yield undefined;
    const set = patchSetOf(served.shape, served.context);
    if (set === undefined) continue;
    const held = seen.get(set) ?? new Set(writtenPatches(set).filter((one) => waiting.has(one)));
    seen.set(set, held);
    for (const patch of held) counts.set(patch, (counts.get(patch) ?? 0) + 1);
    // Its responses to the latest change are not generated yet.
    if (served.context !== context) for (const patch of held) waiting.delete(patch);
  }
  for (const [patch, { config, index }] of waiting) {
    const count = counts.get(patch);
    if (count === undefined) continue;
    const proxiesText = `the ${count} connected ${count === 1 ? 'proxy' : 'proxies'} that it is for`;
    yield { ...patchWarning(config, index, unappliedText(proxiesText)), isOfReplica: true };
  }
}

function writtenPatches({ byTarget }: PatchSet): EnvoyPatch[] {
  return [...byTarget.values()].flat().map(({ written }) => written);
}

function patchWarning(config: Config<EnvoyFilter>, index: number, message: string): ProxyWarning {
  return { code: 'PATCH_NOT_APPLIED', config, field: `spec.configPatches[${index}]`, message };
}

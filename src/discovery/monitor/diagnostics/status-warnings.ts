/** Converts diagnostics to status warnings about objects that take only partial effect. */

import type { Config } from '../../../model/config/config.ts';
import { conditionReasonOf } from '../../../runtime/errors.ts';
import type { Steps } from '../../../runtime/turns.ts';
import { visibleLine } from '../../../runtime/visible-text.ts';
import type { ConfigSnapshot } from '../../config/snapshots/config-snapshot.ts';
import { placeText } from '../../config/sources/config-problem.ts';
import type { ObjectWarning } from '../../distribution/object-warnings.ts';
import { generationOf, kindsWithWarningEvents } from '../../distribution/status-objects.ts';
import type { Diagnostic, PushStatus } from './push-status.ts';
import type { LoggableWarning } from './warning-log.ts';

const reasons: Readonly<Record<string, string>> = {
  pilot_gateway_servers_rejected: 'ServerNotServed',
  pilot_gateway_servers_overlap: 'HostsOverlap',
  pilot_sds_certificate_errors_total: 'CredentialNotServed',
  pilot_revocation_list_problems: 'RevocationListNotUsable',
  pilot_wasm_withheld: 'WasmNotSupported',
  pilot_host_name_endpoints: 'HostNameEndpoints',
  pilot_endpoints_without_address: 'EndpointsWithoutAddress',
  pilot_plaintext_across_networks: 'PlaintextAcrossNetworks',
  pilot_default_endpoints_replaced: 'AddressFamilyReplaced',
  pilot_jwks_sources_rejected: 'LimitExceeded',
  pilot_destrule_subsets_beyond_limit: 'LimitExceeded',
  pilot_config_warnings: 'ConfigWarning',
  // An error code about the same host is more specific.
  pilot_duplicate_envoy_clusters: 'DuplicateHost',
};

const maxTexts = 5;
const maxMessageLength = 1_024;

/**
 * Returns warnings by `Kind/namespace/name`, each with the reason of its first diagnostic.
 *
 * @param isOnlyReplica if false, diagnostics that depend on all proxies are omitted
 */
export function* objectWarnings(
  status: PushStatus,
  { byKey }: Pick<ConfigSnapshot, 'byKey'>,
  isOnlyReplica = true,
): Steps<ReadonlyMap<string, ObjectWarning>> {
  const warningsByObject = new Map<
    string,
    { readonly reason: string; readonly generation: number; readonly texts: string[] }
  >();
  for (const [metric, reason] of Object.entries(reasons)) {
    for (const { objects = [], message, code, isOfReplica } of Object.values(status[metric] ?? {})) {
      yield;
      if (isOfReplica && !isOnlyReplica) continue;
      for (const key of objects) {
        const config = byKey.get(key);
        const generation = config && (kindsWithWarningEvents.has(config.kind) ? 0 : generationOf(config));
        if (generation === undefined) continue;
        const warning = warningsByObject.get(key) ?? {
          reason: code === undefined ? reason : conditionReasonOf(code),
          generation,
          texts: [],
        };
        warningsByObject.set(key, warning);
        warning.texts.push(message);
      }
    }
  }
  return new Map(
    [...warningsByObject].map(([key, { reason, generation, texts }]) => [
      key,
      { reason, generation, text: joinTexts(texts) },
    ]),
  );
}

/**
 * Returns warnings about several objects for the log, one for each object.
 *
 * @param logged keys of warnings that are logged elsewhere
 * @param isOnlyReplica as for {@link objectWarnings}
 */
export function* loggableWarnings(
  { pilot_config_warnings: warnings = {} }: PushStatus,
  { byKey }: Pick<ConfigSnapshot, 'byKey'>,
  logged: ReadonlySet<string>,
  isOnlyReplica = true,
): Steps<readonly LoggableWarning[]> {
  const warningsByObject = new Map<Config, Diagnostic[]>();
  for (const [key, warning] of Object.entries(warnings)) {
    yield;
    const config = byKey.get(warning.objects?.[0] ?? '');
    if (config === undefined || logged.has(key) || (warning.isOfReplica && !isOnlyReplica)) continue;
    warningsByObject.set(config, [...(warningsByObject.get(config) ?? []), warning]);
  }
  return [...warningsByObject].map(([{ kind, namespace, name, source, resourceVersion }, ofObject]) => ({
    ...{ namespace, resourceVersion, object: `${kind} ${namespace}/${name}` },
    place: source === undefined ? '' : placeText(source),
    code: [...new Set(ofObject.flatMap(({ code }) => code ?? []))].join(','),
    reason: joinTexts(ofObject.map(({ message }) => message)),
  }));
}

function joinTexts(texts: readonly string[]): string {
  const uniqueTexts = [...new Set(texts)];
  const omittedCount = uniqueTexts.length - maxTexts;
  return visibleLine(
    [...uniqueTexts.slice(0, maxTexts), ...(omittedCount > 0 ? [`and ${omittedCount} more`] : [])].join('; '),
    maxMessageLength,
  );
}

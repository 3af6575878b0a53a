/** Credentials of Gateway objects that are in the same files, and that no server could do with (spec/discovery.md §8.7). */
import type { Config } from '../../model/config/config.ts';
import type { Problem } from '../../model/config/problem.ts';
import type { Gateway } from '../../model/kinds/gateway.ts';
import type { ConfigMap } from '../../model/kinds/kubernetes/config-map.ts';
import type { Secret } from '../../model/kinds/kubernetes/secret.ts';
import { CredentialIndex } from '../../model/push-context/credential-index.ts';
import { unservedCredential } from '../../networking/secrets/build.ts';
import { credentialsOfServer } from '../../networking/secrets/credential-name.ts';

/**
 * Warnings: a gateway of another namespace would have Secrets of its own, and one that is not in the files may be in the
 * cluster.
 */
export function credentialProblems(configs: readonly Config[]): Problem[] {
  const ofKind = <Spec>(kind: string) => configs.filter((config) => config.kind === kind) as readonly Config<Spec>[];
  const credentials = new CredentialIndex({
    Secret: ofKind<Secret>('Secret'),
    ConfigMap: ofKind<ConfigMap>('ConfigMap'),
  });
  return ofKind<Gateway>('Gateway').flatMap(({ namespace, name: gateway, spec, source }) =>
    spec.servers.flatMap(({ tls }, index) =>
      (tls ? credentialsOfServer(tls) : []).flatMap((name): Problem[] => {
        const reason = unservedCredential(name, namespace, { credentials });
        // What is nowhere in the files is told where it is missed: at the gateway.
        if (reason === undefined || !/^(?:Secret|ConfigMap) /.test(reason)) return [];
        return [
          {
            severity: 'warning',
            file: source?.file ?? '',
            line: source?.line ?? 1,
            object: `Gateway ${namespace}/${gateway}`,
            key: { kind: 'Gateway', namespace, name: gateway },
            field: `spec.servers[${index}].tls`,
            message: `${reason}: nobody is let in`,
          },
        ];
      }),
    ),
  );
}

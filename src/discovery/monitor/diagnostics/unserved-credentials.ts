import type { Config } from '../../../model/config/config.ts';
import type { Gateway } from '../../../model/kinds/gateway/gateway.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { type GatewayServer, mergeGateways } from '../../../networking/gateway/merge-gateways.ts';
import { type UnservedCredential, unservedCredential } from '../../../networking/secrets/build.ts';
import { parseCredentialName, serverCredentials } from '../../../networking/secrets/credential-name.ts';
import type { ServedProxy } from './find-diagnostics.ts';

interface CredentialUser extends Pick<GatewayServer, 'gateway' | 'index'> {
  readonly field: string;
  /**
   * Whether the Gateway's author may know if the object exists, because it is in the Gateway's namespace or granted to it. Otherwise, a Gateway for
   * workloads of another namespace could reveal which Secrets exist.
   */
  readonly isVisibleToAuthor: boolean;
}

interface UnservedByName extends Omit<UnservedCredential, 'cause'> {
  readonly cause: UnservedCredential['cause'] | 'access';
  readonly name: string;
  readonly namespace: string;
  readonly proxy: string;
  readonly users: readonly CredentialUser[];
}

/** Yields `undefined` for each server whose credentials are all served. Skips objects that are not read yet. */
export function* unservedCredentials(proxies: Iterable<ServedProxy>): Generator<UnservedByName | undefined> {
  for (const servedProxy of filterRouters(proxies)) {
    const { proxy, shape, context } = servedProxy;
    const namespace = shape.configNamespace;
    const users = new Map<string, CredentialUser[]>();
    for (const { servers } of mergeGateways(shape, context).ports) {
      for (const { server, gateway, index } of servers) {
        yield undefined;
        for (const { resource: name, field } of server.tls ? serverCredentials(server.tls) : []) {
          const user = { gateway, index, field, isVisibleToAuthor: mayKnow(gateway, name, namespace, context) };
          const credentialUsers = users.get(name);
          if (credentialUsers === undefined) users.set(name, [user]);
          else credentialUsers.push(user);
        }
      }
    }
    for (const [name, all] of users) {
      const unservedReason = reasonFor(name, servedProxy);
      yield unservedReason && { ...unservedReason, name, namespace, proxy: proxy.id, users: all };
    }
  }
}

function reasonFor(name: string, servedProxy: ServedProxy): Pick<UnservedByName, 'cause' | 'text'> | undefined {
  const { shape, context } = servedProxy;
  const unservedReason = unservedCredential(name, shape.configNamespace, context);
  if (unservedReason?.cause === 'name' || unservedReason?.cause === 'grant') return unservedReason;
  switch (servedProxy.credentialReading?.(name)) {
    case undefined:
    case 'absent':
      return unservedReason;
    case 'present':
      // The next push context will contain the object.
      return unservedReason?.cause === 'absent' ? undefined : unservedReason;
    case 'unread':
      return undefined;
    case 'refused':
      return { cause: 'content', text: 'exceeds a limit and is ignored: its Event and the log have the reason' };
    case 'denied':
      return {
        cause: 'access',
        text: `is not sent to proxy ${servedProxy.proxy.id}: its service account needs permission to list Secrets in namespace ${shape.configNamespace}, and its connection must be authenticated as that account`,
      };
  }
}

function mayKnow(
  { namespace }: Config<Gateway>,
  name: string,
  ownNamespace: string,
  { referenceGrants }: Pick<PushContext, 'referenceGrants'>,
): boolean {
  const credentialName = parseCredentialName(name, ownNamespace);
  if (credentialName === undefined || credentialName.namespace === namespace) return true;
  return (
    credentialName.kind === 'Secret' &&
    referenceGrants.allowsSecret(namespace, credentialName.namespace, credentialName.name)
  );
}

/** Equal shapes have equal diagnostics, so one connected gateway of each shape suffices. */
export function* filterRouters(proxies: Iterable<ServedProxy>): Iterable<ServedProxy> {
  const seenShapes = new Set<ProxyShape>();
  for (const servedProxy of proxies) {
    if (servedProxy.shape.type !== 'router' || seenShapes.has(servedProxy.shape)) continue;
    seenShapes.add(servedProxy.shape);
    yield servedProxy;
  }
}

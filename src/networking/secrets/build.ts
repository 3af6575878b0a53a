/** The xDS server authorizes clients beforehand, because generators do not know identities. */
import { create } from '@bufbuild/protobuf';
import { type Either, isLeft, map } from 'fp-ts/lib/Either.js';
import { SecretSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import type { RevocationLists } from '../../identity/revocation-list.ts';
import { type Config, configKeyOf } from '../../model/config/config.ts';
import {
  type CredentialCertificate,
  serverCertificateOf,
  type TrustedRoots,
  trustedRootsOf,
  trustedRootsOfConfigMap,
} from '../../model/kinds/kubernetes/credential.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import type { Init } from '../messages/init.ts';
import { EnvoyResource } from '../messages/resource.ts';
import { type CredentialName, parseCredentialName, rootsObjectName } from './credential-name.ts';

type SecretInit = Init<typeof SecretSchema>;

type Credentials = Pick<PushContext, 'credentials' | 'referenceGrants'>;

/** Names of unusable credentials are omitted. */
export function buildSecrets(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  return names.flatMap((name) => {
    const credential = parseCredentialName(name, shape.configNamespace);
    if (credential === undefined || !mayServeCredential(credential, shape.configNamespace, push)) return [];
    const credentialObject = objectOf(credential, push, shape.configNamespace);
    if (credentialObject === undefined) return [];
    // Names are relative to the namespace, so the cache key contains it.
    const inputs = [credentialObject.config, credentialObject.revocationLists];
    return cache.getOrBuild('SDS', `${credential.namespace} ${name}`, inputs, () =>
      buildCredential(name, credentialObject),
    ).resources;
  });
}

export interface UnservedCredential {
  /** The causes `absent` and `content` depend on the object, whereas `name` and `grant` do not. */
  readonly cause: 'name' | 'grant' | 'absent' | 'content';
  readonly text: string;
}

export function unservedCredential(name: string, namespace: string, push: Credentials): UnservedCredential | undefined {
  const credential = parseCredentialName(name, namespace);
  if (credential === undefined) return { cause: 'name', text: 'must be kubernetes://NAME or configmap://NAME' };
  if (!mayServeCredential(credential, namespace, push)) {
    const text = `is in namespace ${credential.namespace}, where no ReferenceGrant allows Gateways of namespace ${namespace} to refer to it`;
    return { cause: 'grant', text };
  }
  const credentialObject = objectOf(credential, push, namespace);
  if (credentialObject === undefined)
    return { cause: 'absent', text: `there is no ${credential.kind} ${credential.namespace}/${credential.name}` };
  const error = contentError(credentialObject, credential.roots);
  if (error === undefined) return undefined;
  return {
    cause: 'content',
    text: `${credentialObject.config.kind} ${credential.namespace}/${credentialObject.config.name} ${error}`,
  };
}

const errorsByObject = new WeakMap<object, Map<boolean, string | undefined>>();

function contentError({ config, revocationLists, read }: FoundSecret, roots: boolean): string | undefined {
  const key = revocationLists ?? config;
  const cachedErrors = errorsByObject.get(key) ?? new Map<boolean, string | undefined>();
  errorsByObject.set(key, cachedErrors);
  if (!cachedErrors.has(roots)) {
    const result = read();
    cachedErrors.set(roots, isLeft(result) ? result.left : undefined);
  }
  return cachedErrors.get(roots);
}

interface FoundSecret {
  readonly config: Config;
  readonly revocationLists: RevocationLists | null;
  readonly read: () => Either<string, SecretInit['type']>;
}

/** Secrets of other namespaces require a grant. ConfigMaps cannot be granted. */
function mayServeCredential(
  { kind, namespace, name }: CredentialName,
  proxyNamespace: string,
  push: Credentials,
): boolean {
  if (namespace === proxyNamespace) return true;
  return kind === 'Secret' && push.referenceGrants.allowsSecret(proxyNamespace, namespace, name);
}

/** A separate object with CA certificates has priority over that of the server certificate. */
function objectOf(
  { kind, namespace, name, roots }: CredentialName,
  push: Credentials,
  proxyNamespace: string,
): FoundSecret | undefined {
  if (kind === 'ConfigMap') {
    const config = push.credentials.configMap(namespace, name);
    return roots && config
      ? { config, revocationLists: null, read: () => decodeRoots(trustedRootsOfConfigMap(config.spec)) }
      : undefined;
  }
  const rootsSecret = roots ? push.credentials.secret(namespace, rootsObjectName(name)) : undefined;
  // A grant names one object. Without this check, CAs in the server certificate's Secret could replace those of a
  // Secret that is not granted.
  if (rootsSecret !== undefined && !push.referenceGrants.allowsSecret(proxyNamespace, namespace, rootsSecret.name))
    return undefined;
  const config = rootsSecret ?? push.credentials.secret(namespace, name);
  if (config === undefined) return undefined;
  const lists = roots ? push.credentials.revocationLists(config) : null;
  return {
    config,
    revocationLists: lists,
    read: () =>
      roots ? decodeRoots(trustedRootsOf(config.spec, lists)) : decodeCertificate(serverCertificateOf(config.spec)),
  };
}

function buildCredential(
  name: string,
  { config, read }: FoundSecret,
): { resources: EnvoyResource[]; dependsOn: EnvoyResource['dependsOn'] } {
  const dependsOn = [configKeyOf(config)];
  const type = read();
  if (isLeft(type)) return { resources: [], dependsOn };
  const message = create(SecretSchema, { name, type: type.right! });
  return { resources: [new EnvoyResource(name, SecretSchema, message, dependsOn)], dependsOn };
}

const inlineDataSource = (inlineBytes: Uint8Array) =>
  ({ specifier: { case: 'inlineBytes', value: inlineBytes } }) as const;

const decodeCertificate = map(({ chain, privateKey, ocspStaple }: CredentialCertificate): SecretInit['type'] => ({
  case: 'tlsCertificate',
  value: {
    certificateChain: inlineDataSource(chain),
    privateKey: inlineDataSource(privateKey),
    ...(ocspStaple && { ocspStaple: inlineDataSource(ocspStaple) }),
  },
}));

const decodeRoots = map(({ certificates, crl }: TrustedRoots): SecretInit['type'] => ({
  case: 'validationContext',
  value: { trustedCa: inlineDataSource(certificates), ...(crl && { crl: inlineDataSource(crl) }) },
}));

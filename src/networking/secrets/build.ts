/**
 * SDS: certificates and keys that gateways ask for by name (spec/discovery.md §8.7, credentialName). Whether the client
 * may have them was decided before: a generator knows shapes, and not who is there.
 */
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
import { Resource } from '../messages/resource.ts';
import { type CredentialName, parseCredentialName, rootsObjectName } from './credential-name.ts';

type SecretInit = Init<typeof SecretSchema>;

type Credentials = Pick<PushContext, 'credentials' | 'referenceGrants'>;

/** One for each name of a usable credential of the proxy's own namespace, or granted to its Gateways; other names are left out. */
export function buildSecrets(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): Resource[] {
  return names.flatMap((name) => {
    const asked = parseCredentialName(name, shape.configNamespace);
    if (asked === undefined || !mayServe(asked, shape.configNamespace, push)) return [];
    const found = objectOf(asked, push, shape.configNamespace);
    if (found === undefined) return [];
    // The namespace is in the key: the same name is another secret in another namespace.
    const inputs = [found.config, found.lists];
    return memory.recall('SDS', `${asked.namespace} ${name}`, inputs, () => made(name, found)).resources;
  });
}

export interface UnservedCredential {
  /** `absent` and `content` depend on the object; the others are decided without it. */
  readonly cause: 'name' | 'grant' | 'absent' | 'content';
  /** A sentence for the author. */
  readonly text: string;
}

/** Why a name is not served to proxies of a namespace; `undefined` if it is. */
export function unservedCredential(name: string, namespace: string, push: Credentials): UnservedCredential | undefined {
  const asked = parseCredentialName(name, namespace);
  if (asked === undefined) return { cause: 'name', text: 'must be kubernetes://NAME or configmap://NAME' };
  if (!mayServe(asked, namespace, push)) {
    const text = `is in namespace ${asked.namespace}, where no ReferenceGrant allows Gateways of namespace ${namespace} to refer to it`;
    return { cause: 'grant', text };
  }
  const found = objectOf(asked, push, namespace);
  if (found === undefined)
    return { cause: 'absent', text: `there is no ${asked.kind} ${asked.namespace}/${asked.name}` };
  const mistake = mistakeIn(found, asked.roots);
  if (mistake === undefined) return undefined;
  return { cause: 'content', text: `${found.config.kind} ${asked.namespace}/${found.config.name} ${mistake}` };
}

const mistakes = new WeakMap<object, Map<boolean, string | undefined>>();

/** Certificates take long to read: each object is read once for what it is asked for. */
function mistakeIn({ config, lists, read }: Found, roots: boolean): string | undefined {
  const key = lists ?? config;
  const known = mistakes.get(key) ?? new Map<boolean, string | undefined>();
  mistakes.set(key, known);
  if (!known.has(roots)) {
    const result = read();
    known.set(roots, isLeft(result) ? result.left : undefined);
  }
  return known.get(roots);
}

/** An object, and how it is read. */
interface Found {
  readonly config: Config;
  /** Checked revocation lists of a Secret's roots. */
  readonly lists: RevocationLists | null;
  readonly read: () => Either<string, SecretInit['type']>;
}

/** A Secret of another namespace needs a grant; no grant covers ConfigMaps. */
function mayServe({ kind, namespace, name }: CredentialName, proxyNamespace: string, push: Credentials): boolean {
  if (namespace === proxyNamespace) return true;
  return kind === 'Secret' && push.referenceGrants.allowsSecret(proxyNamespace, namespace, name);
}

/** Roots may lie in an object of their own, which then counts, or in one with the server's certificate. */
function objectOf(
  { kind, namespace, name, roots }: CredentialName,
  push: Credentials,
  proxyNamespace: string,
): Found | undefined {
  if (kind === 'ConfigMap') {
    const config = push.credentials.configMap(namespace, name);
    return roots && config
      ? { config, lists: null, read: () => asRoots(trustedRootsOfConfigMap(config.spec)) }
      : undefined;
  }
  const own = roots ? push.credentials.secret(namespace, rootsObjectName(name)) : undefined;
  // A grant by name covers no other object: the authorities of the certificate must not replace those of a hidden Secret.
  if (own !== undefined && !push.referenceGrants.allowsSecret(proxyNamespace, namespace, own.name)) return undefined;
  const config = own ?? push.credentials.secret(namespace, name);
  if (config === undefined) return undefined;
  const lists = roots ? push.credentials.revocationLists(config) : null;
  return {
    config,
    lists,
    read: () => (roots ? asRoots(trustedRootsOf(config.spec, lists)) : asCertificate(serverCertificateOf(config.spec))),
  };
}

function made(name: string, { config, read }: Found): { resources: Resource[]; dependsOn: Resource['dependsOn'] } {
  const dependsOn = [configKeyOf(config)];
  const type = read();
  if (isLeft(type)) return { resources: [], dependsOn };
  const message = create(SecretSchema, { name, type: type.right! });
  return { resources: [new Resource(name, SecretSchema, message, dependsOn)], dependsOn };
}

const inline = (inlineBytes: Uint8Array) => ({ specifier: { case: 'inlineBytes', value: inlineBytes } }) as const;

const asCertificate = map(({ chain, privateKey, ocspStaple }: CredentialCertificate): SecretInit['type'] => ({
  case: 'tlsCertificate',
  value: {
    certificateChain: inline(chain),
    privateKey: inline(privateKey),
    ...(ocspStaple && { ocspStaple: inline(ocspStaple) }),
  },
}));

const asRoots = map(({ certificates, crl }: TrustedRoots): SecretInit['type'] => ({
  case: 'validationContext',
  value: { trustedCa: inline(certificates), ...(crl && { crl: inline(crl) }) },
}));

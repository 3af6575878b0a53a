/**
 * The type URL `networking.istio.io/v1/VirtualService` identifies a kind, and each resource is an `istio.mcp.v1alpha1.Resource` that contains the
 * object.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import { type KindName, kinds } from '../../../model/kinds/index.ts';

export const configKinds = (Object.keys(kinds) as KindName[])
  .filter((kind) => kinds[kind].group.endsWith('.istio.io') && kinds[kind].body === 'spec')
  .sort();

/** Istio requests this type before all others, and some servers wait for this request. The response is not used. */
export const meshConfigType = 'core/v1alpha1/MeshConfig';

/** Some servers send the type URL of an Any. */
const typeUrlPrefix = 'type.googleapis.com/';

/** The type URL that current Istio requests is first. */
export function typesOf(kind: KindName, versions: readonly string[] = []): readonly string[] {
  const { group, versions: kindVersions } = kinds[kind];
  const requestedVersions = versions.filter((version) => (kindVersions as readonly string[]).includes(version));
  return (requestedVersions.length > 0 ? requestedVersions : kindVersions).map(
    (version) => `${group}/${version}/${kind}`,
  );
}

export function kindOfType(typeUrl: string): KindName | undefined {
  return kindByType.get(typeUrl.startsWith(typeUrlPrefix) ? typeUrl.slice(typeUrlPrefix.length) : typeUrl);
}

const kindByType = new Map(
  configKinds.flatMap((kind) => typesOf(kind).map((type): [string, KindName] => [type, kind])),
);

/** Loaded on first use. */
export async function loadMessages(): Promise<ReadonlyMap<KindName, DescMessage>> {
  const [networking, proxyConfig, policies, telemetry, wasm, trafficExtension] = await Promise.all([
    import('../../../gen/istio/networking/v1alpha3/networking_pb.ts'),
    import('../../../gen/istio/networking/v1beta1/proxy_config_pb.ts'),
    import('../../../gen/istio/security/v1beta1/policies_pb.ts'),
    import('../../../gen/istio/telemetry/v1alpha1/telemetry_pb.ts'),
    import('../../../gen/istio/extensions/v1alpha1/wasm_pb.ts'),
    import('../../../gen/istio/extensions/v1alpha1/traffic_extension_pb.ts'),
  ]);
  const schemas: Readonly<Record<string, unknown>> = {
    ...networking,
    ...proxyConfig,
    ...policies,
    ...telemetry,
    ...wasm,
    ...trafficExtension,
  };
  const kindsWithSchema = configKinds.filter((kind) => Object.hasOwn(schemas, `${kind}Schema`));
  return new Map(
    kindsWithSchema.map((kind): [KindName, DescMessage] => [kind, schemas[`${kind}Schema`] as DescMessage]),
  );
}

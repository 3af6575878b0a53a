/**
 * Every annotation and label that the table lists as read affects the resources of proxies, and no other one does
 * (`src/model/kinds/metadata-keys.ts`).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { annotationKeys, labelKeys } from '../../src/model/kinds/metadata-keys.ts';
import { metadataWarnings } from '../../src/model/kinds/metadata-warnings.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type FieldWorld, outputOf, readWorlds, type WorldObject } from './world.ts';

const tables = { annotations: annotationKeys, labels: labelKeys } as const;
type MetadataPart = keyof typeof tables;
type Texts = Readonly<Record<string, string>>;

interface KeyUse {
  readonly part: MetadataPart;
  readonly key: string;
  readonly kind: KindName;
}

const uses: readonly KeyUse[] = (['annotations', 'labels'] as const).flatMap((part) =>
  Object.entries(tables[part]).flatMap(([key, { kindsThatReadIt = [] }]) =>
    kindsThatReadIt.map((kind) => ({ part, key, kind })),
  ),
);

/** Keys that other code than the generators reads, with a text of the reading file as evidence. */
const otherReaders: readonly { readonly use: RegExp; readonly file: string; readonly text: string }[] = [
  {
    use: /^KubernetesGateway annotations (gateway\.istio\.io\/(name-override|service-account)|networking\.istio\.io\/service-type)$/,
    file: 'src/injection/gateway/gateway-deployment.ts',
    text: "'gateway.istio.io/name-override'",
  },
  {
    use: /^Pod annotations proxy\.istio\.io\/config/,
    file: 'src/agent/options/proxy-config-sources.ts',
    text: "podAnnotations['proxy.istio.io/config']",
  },
  {
    use: /^Pod annotations (sidecar\.istio\.io\/discoveryAddress|status\.sidecar\.istio\.io\/port)/,
    file: 'src/agent/options/proxy-config-sources.ts',
    text: "annotations['status.sidecar.istio.io/port']",
  },
  {
    use: /^Pod annotations sidecar\.istio\.io\/(extraStatTags|stats)/,
    file: 'src/agent/bootstrap/bootstrap-stats.ts',
    text: 'sidecar.istio.io/statsI',
  },
  {
    use: /^Pod annotations traffic\.sidecar\.istio\.io\/excludeInterfaces/,
    file: 'src/agent/options/proxy-options.ts',
    text: "podAnnotations['traffic.sidecar.istio.io/excludeInterfaces']",
  },
  {
    use: /^Pod (annotations|labels) sidecar\.istio\.io\/inject$/,
    file: 'src/injection/decision/decision.ts',
    text: 'injectKey',
  },
  {
    use: /^Pod annotations (inject\.istio\.io\/templates|proxy\.istio\.io\/overrides)/,
    file: 'src/injection/inject.ts',
    text: "'inject.istio.io/templates'",
  },
  {
    // `src/injection/template` validates each value and reads it.
    use: /^Pod annotations ((traffic|readiness\.status)\.)?sidecar\.istio\.io\/|^Pod annotations (readiness\.status|prometheus)\.|^Pod annotations istio\.io\/reroute/,
    file: 'src/injection/decision/annotations.ts',
    text: "'traffic.sidecar.istio.io/includeInboundPorts'",
  },
  {
    use: /^WorkloadEntry annotations istio\.io\/(autoRegistrationGroup|workloadController|connectedAt|disconnectedAt)/,
    file: 'src/discovery/registration/group-entry.ts',
    text: 'istio.io/workloadController',
  },
  {
    // Read from the proxy's WorkloadEntry, as from a Pod.
    use: /^WorkloadEntry labels gateway\.networking\.k8s\.io\/gateway-name/,
    file: 'src/model/push-context/workload-policies.ts',
    text: "labels['gateway.networking.k8s.io/gateway-name']",
  },
  {
    use: /^Service labels gateway\.networking\.k8s\.io\/gateway-name/,
    file: 'src/model/translation/gateway-api/gateway-status.ts',
    text: 'service.labels[gatewayNameLabel]',
  },
];

const nameOf = ({ part, key, kind }: KeyUse): string => `${kind} ${part} ${key}`;

const worlds = readWorlds();
const outputs = new Map<FieldWorld, ReturnType<typeof outputOf>>();

function baseOf(world: FieldWorld): ReturnType<typeof outputOf> {
  const cachedOutput = outputs.get(world) ?? outputOf(world);
  outputs.set(world, cachedOutput);
  return cachedOutput;
}

function hasKind(object: WorldObject, kind: KindName): boolean {
  const { group, writtenAs = kind } = kinds[kind];
  return object.kind === writtenAs && object.apiVersion.startsWith(group === '' ? 'v1' : `${group}/`);
}

function withMetadata(world: FieldWorld, index: number, part: MetadataPart, texts: Texts): FieldWorld {
  const object = world.objects[index]!;
  const changedObject = { ...object, metadata: { ...object.metadata, [part]: texts } };
  return { ...world, objects: world.objects.with(index, changedObject) };
}

/** Whether the output differs without the text, or with another text. */
function hasEffect({ part, key, kind }: KeyUse): boolean | 'in no world' {
  let isThere = false;
  for (const world of worlds)
    for (const [index, object] of world.objects.entries()) {
      const texts = (object.metadata[part] ?? {}) as Texts;
      if (!hasKind(object, kind) || !Object.hasOwn(texts, key)) continue;
      isThere = true;
      const { [key]: _, ...rest } = texts;
      const base = baseOf(world);
      const variants = [rest, { ...rest, [key]: 'x' }, { ...rest, [key]: 'true' }];
      if (variants.some((other) => changesOutput(withMetadata(world, index, part, other), base))) return true;
    }
  return isThere ? false : 'in no world';
}

function changesOutput(world: FieldWorld, { requested, text }: ReturnType<typeof outputOf>): boolean {
  try {
    return outputOf(world, requested).text !== text;
  } catch {
    return false;
  }
}

describe('annotations and labels with an effect', () => {
  it.each(uses.map((use) => [nameOf(use), use] as const))('%s affects generated resources', (name, use) => {
    const otherReader = otherReaders.find((one) => one.use.test(name));
    if (otherReader === undefined) expect(hasEffect(use)).toBe(true);
    else expect(readFileSync(join(packageRoot(), otherReader.file), 'utf8')).toContain(otherReader.text);
  });

  it.each(otherReaders.map((one) => [one.use.source, one] as const))('the exception %s is needed', (_, { use }) => {
    const excepted = uses.filter((one) => use.test(nameOf(one)));
    expect(excepted.filter((one) => hasEffect(one) === true).map(nameOf)).toEqual([]);
  });

  it('each exception names an annotation or label of the table', () => {
    expect(otherReaders.filter(({ use }) => !uses.some((one) => use.test(nameOf(one))))).toEqual([]);
  });
});

describe('annotations and labels with a warning', () => {
  const world = worlds.find(({ name }) => name === 'metadata')!;
  const kindsOfWorld = (Object.keys(kinds) as KindName[]).filter((kind) =>
    world.objects.some((object) => hasKind(object, kind)),
  );

  it.each(kindsOfWorld)('unused annotations and labels of a %s do not change any resource', (kind) => {
    const index = world.objects.findIndex((object) => hasKind(object, kind));
    for (const part of ['annotations', 'labels'] as const) {
      const warned = Object.keys(tables[part]).filter(
        (key) => metadataWarnings(kind, { annotations: {}, labels: {}, [part]: { [key]: 'true' } }).length > 0,
      );
      // Kinds that do not use `istio.io/dry-run` reject it.
      const acceptedKeys = warned.filter((key) => key !== 'istio.io/dry-run');
      expect(acceptedKeys.length).toBeGreaterThan(5);
      const texts = (world.objects[index]!.metadata[part] ?? {}) as Texts;
      const extraTexts = Object.fromEntries(acceptedKeys.map((key) => [key, 'true']));
      const { requested, text } = baseOf(world);
      expect(outputOf(withMetadata(world, index, part, { ...extraTexts, ...texts }), requested).text === text).toBe(
        true,
      );
    }
  });
});

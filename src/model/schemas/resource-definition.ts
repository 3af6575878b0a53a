/**
 * Generates CustomResourceDefinitions of Istio's kinds from the decoders. Kubernetes and the Gateway API define their own: a definition with only the
 * fields supported here would make the API server drop all others.
 */
import { type KindName, kinds } from '../kinds/index.ts';
import type { Kind } from '../kinds/kind.ts';
import { appearanceOf, type PrinterColumn } from './printed-columns.ts';
import { type StructuralSchema, structuralSchema } from './structural-schema.ts';

export interface ResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[];
      readonly categories: readonly string[];
    };
    readonly scope: 'Namespaced' | 'Cluster';
    readonly versions: readonly ServedVersion[];
  };
}

interface ServedVersion {
  readonly name: string;
  readonly served: true;
  /** Versions are equivalent, so only one is stored and no conversion is needed. */
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: StructuralSchema };
  readonly subresources: { readonly status: Readonly<Record<string, never>> };
  readonly additionalPrinterColumns: readonly PrinterColumn[];
}

export function resourceDefinitions(): readonly ResourceDefinition[] {
  const names = Object.keys(kinds).sort() as KindName[];
  return names.flatMap((name) => definitionOf(name) ?? []);
}

function definitionOf(name: KindName): ResourceDefinition | undefined {
  const kind = kinds[name] as Kind<KindName, unknown>;
  const appearance = appearanceOf(name);
  if (appearance === undefined) return undefined;
  const { description, columns, shortNames } = appearance;
  const schema: StructuralSchema = {
    type: 'object',
    description,
    properties: { spec: { ...structuralSchema(kind.decoder), description }, status },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${kind.plural}.${kind.group}`,
      labels: { 'app.kubernetes.io/part-of': 'chartpilot' },
      // Deleting the definition when the chart is uninstalled would delete its objects.
      annotations: { 'helm.sh/resource-policy': 'keep' },
    },
    spec: {
      group: kind.group,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        ...(shortNames.length > 0 && { shortNames }),
        categories: ['istio-io', kind.group.replaceAll('.', '-')],
      },
      scope: kind.scope,
      versions: kind.versions.map((version, index) => ({
        name: version,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: schema },
        subresources: { status: {} },
        additionalPrinterColumns: columns,
      })),
    },
  };
}

const text: StructuralSchema = { type: 'string' };

/** Other controllers, including Istio's, also write the status. */
const status: StructuralSchema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    conditions: {
      type: 'array',
      // A map by type allows several writers, each with its own conditions.
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        required: ['type'],
        properties: { type: text, status: text, reason: text, message: text, lastTransitionTime: text },
      },
    },
    observedGeneration: { 'x-kubernetes-int-or-string': true },
  },
};

/** Reads the cluster without decoding it, because a response may contain thousands. */
import {
  Cluster_DiscoveryType,
  Cluster_EdsClusterConfigSchema,
  ClusterSchema,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { NameCollector } from './collect-names.ts';
import { FieldCursor, lengthDelimited } from './field-cursor.ts';
import { secretFields } from './name-fields.ts';

export interface ClusterWarming {
  /**
   * A cluster can be used `at once`, after its `assignment` on the same stream, or after `warming` by anything else, such as DNS or health checks.
   * Envoy acknowledges CDS only after warming.
   */
  readonly usableAfter: 'at once' | 'assignment' | 'warming';
  readonly assignment: string;
  /** Secrets requested by SDS. Envoy waits for secrets that no other cluster has requested. */
  readonly secrets: ReadonlySet<string>;
}

const collector = new NameCollector({ fields: secretFields, skippedTypes: new Set() });

const { name, type, clusterType, edsClusterConfig, healthChecks } = ClusterSchema.field;
const { serviceName } = Cluster_EdsClusterConfigSchema.field;

/** @param firstChunk chunk of the encoded cluster, which begins at `start` */
export function clusterWarmingOf(firstChunk: Uint8Array, start: number): ClusterWarming {
  const buffer = Buffer.from(firstChunk.buffer, firstChunk.byteOffset, firstChunk.byteLength);
  let [clusterName, assignment] = ['', ''];
  let hasHealthChecks = false;
  let discovery: Cluster_DiscoveryType | 'extension' | undefined;
  for (const { number, from, to, value } of fieldsOf(buffer, start, buffer.length)) {
    if (number === name.number) clusterName = buffer.toString('utf8', from, to);
    // For a oneof, the last encoded field applies.
    else if (number === type.number) discovery = value as Cluster_DiscoveryType;
    else if (number === clusterType.number) discovery = 'extension';
    else if (number === healthChecks.number) hasHealthChecks = true;
    else if (number === edsClusterConfig.number) assignment = assignmentIn(buffer, from, to) ?? assignment;
  }
  return {
    usableAfter: hasHealthChecks ? 'warming' : usableAfterOf(discovery),
    assignment: assignment || clusterName,
    secrets: secretsIn(firstChunk, start),
  };
}

interface Field {
  readonly number: number;
  readonly from: number;
  readonly to: number;
  readonly value: number;
}

function* fieldsOf(buffer: Buffer, start: number, end: number): Generator<Field> {
  const cursor = new FieldCursor(buffer, start);
  while (cursor.position < end) {
    const tag = cursor.varint();
    const number = tag >>> 3;
    if ((tag & 7) === lengthDelimited) {
      const length = cursor.varint();
      const valueStart = cursor.position;
      cursor.position = Math.min(valueStart + length, end);
      yield { number, from: valueStart, to: cursor.position, value: 0 };
    } else if ((tag & 7) === 0) yield { number, from: 0, to: 0, value: cursor.varint() };
    else cursor.skip(tag & 7);
  }
}

function assignmentIn(buffer: Buffer, start: number, end: number): string | undefined {
  let matchingName: string | undefined;
  for (const { number, from, to } of fieldsOf(buffer, start, end)) {
    if (number === serviceName.number) matchingName = buffer.toString('utf8', from, to);
  }
  return matchingName;
}

export function secretsIn(firstChunk: Uint8Array, start: number): ReadonlySet<string> {
  const secrets = new Set<string>();
  collector.collect(ClusterSchema, firstChunk, secrets, start);
  return secrets;
}

function usableAfterOf(discovery: Cluster_DiscoveryType | 'extension' | undefined): ClusterWarming['usableAfter'] {
  switch (discovery) {
    case Cluster_DiscoveryType.EDS:
      return 'assignment';
    case undefined:
    case Cluster_DiscoveryType.STATIC:
    case Cluster_DiscoveryType.ORIGINAL_DST:
      return 'at once';
    default:
      return 'warming';
  }
}

/**
 * Parses responses of Consul's catalog and health endpoints. A list of the wrong type is an error; fields of the wrong type count as absent.
 */
import { isObject, ownValue } from '../../../runtime/json-object.ts';
import type { ConsulHealth, ConsulInstance, ConsulLocality, ConsulNode } from './consul-instance.ts';
import { worstHealth } from './consul-instance.ts';

type Fields = Readonly<Record<string, unknown>>;

export class InvalidCatalog extends Error {}

export interface NodeServices {
  /** Absent if the node does not exist, or the token may not read it. */
  readonly node?: ConsulNode;
  readonly instances: readonly ConsulInstance[];
}

/** An empty `instance` means a check of the node. */
export interface ConsulCheck {
  readonly node: string;
  readonly instance: string;
  readonly status: ConsulHealth;
}

/** Excludes Consul's own services and proxies of its own service mesh. */
export function isMeshService(name: string): boolean {
  return name !== '' && name !== 'consul' && !name.endsWith('-sidecar-proxy');
}

/**
 * Parses `/v1/catalog/nodes`.
 * @throws InvalidCatalog
 */
export function nodeNames(body: unknown): readonly string[] {
  return objectsIn(body, 'list of nodes').flatMap((node) => textOf(node, 'Node') || []);
}

/**
 * Parses `/v1/catalog/services`.
 * @throws InvalidCatalog
 */
export function serviceNames(body: unknown): readonly string[] {
  if (!isObject(body)) throw new InvalidCatalog(`services must be an object, got ${typeOf(body)}`);
  return Object.keys(body);
}

/**
 * Parses `/v1/catalog/node-services/NODE`.
 * @throws InvalidCatalog
 */
export function nodeServices(body: unknown): NodeServices {
  if (!isObject(body)) throw new InvalidCatalog(`services of a node must be an object, got ${typeOf(body)}`);
  if (!isObject(body.Node)) return { instances: [] };
  const node = nodeOf(body.Node);
  const services = objectsIn(body.Services ?? [], 'list of services of a node');
  return { node, instances: services.flatMap((service) => instanceOf(service, node, 'passing')) };
}

/**
 * Parses `/v1/health/service/NAME`.
 * @throws InvalidCatalog
 */
export function serviceInstances(body: unknown): readonly ConsulInstance[] {
  return objectsIn(body, 'list of instances').flatMap((entry) => {
    if (!isObject(entry.Node) || !isObject(entry.Service)) return [];
    const checks = Array.isArray(entry.Checks) ? entry.Checks.filter(isObject) : [];
    return instanceOf(entry.Service, nodeOf(entry.Node), worstHealth(checks.map(statusOf)));
  });
}

/**
 * Parses `/v1/health/state/any`.
 * @throws InvalidCatalog
 */
export function failingChecks(body: unknown): readonly ConsulCheck[] {
  return objectsIn(body, 'list of checks').flatMap((check) => {
    const status = statusOf(check);
    const node = textOf(check, 'Node');
    return status === 'passing' || node === '' ? [] : { node, instance: textOf(check, 'ServiceID'), status };
  });
}

function instanceOf(service: Fields, node: ConsulNode, health: ConsulHealth): ConsulInstance[] {
  const name = textOf(service, 'Service');
  // Sidecars and gateways of Consul's own service mesh are skipped.
  if (textOf(service, 'Kind') !== '' || !isMeshService(name)) return [];
  const weights = isObject(service.Weights) ? service.Weights : {};
  const locality = localityOf(service.Locality);
  return [
    {
      node,
      id: textOf(service, 'ID') || name,
      service: name,
      address: textOf(service, 'Address'),
      port: integerOf(service.Port, 0),
      tags: Array.isArray(service.Tags) ? service.Tags.filter((tag) => typeof tag === 'string') : [],
      meta: textsOf(service.Meta),
      weights: { passing: integerOf(weights.Passing, 1), warning: integerOf(weights.Warning, 1) },
      ...(locality && { locality }),
      health,
    },
  ];
}

function nodeOf(node: Fields): ConsulNode {
  const locality = localityOf(node.Locality);
  return {
    ...{ name: textOf(node, 'Node'), address: textOf(node, 'Address'), datacenter: textOf(node, 'Datacenter') },
    ...(locality && { locality }),
  };
}

/** Treats an unknown status as `critical`, because the instance must not receive requests. */
function statusOf(check: Fields): ConsulHealth {
  const status = textOf(check, 'Status');
  return status === 'passing' || status === 'warning' ? status : 'critical';
}

function localityOf(value: unknown): ConsulLocality | undefined {
  if (!isObject(value)) return undefined;
  const [region, zone] = [textOf(value, 'Region'), textOf(value, 'Zone')];
  return region === '' ? undefined : { region, zone };
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  if (!isObject(value)) return {};
  const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(texts);
}

function objectsIn(value: unknown, subject: string): readonly Fields[] {
  // Go encodes an empty list as null.
  if (value === null) return [];
  if (!Array.isArray(value)) throw new InvalidCatalog(`${subject} must be an array, got ${typeOf(value)}`);
  return value.filter(isObject);
}

function textOf(fields: Fields, name: string): string {
  const value = ownValue(fields, name);
  return typeof value === 'string' ? value : '';
}

function integerOf(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : fallback;
}

function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}

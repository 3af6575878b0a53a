/**
 * The firmware identifies the cloud. Queries to each cloud's metadata server would delay starts outside clouds, and any process on the link may have
 * the server's address.
 */

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { unknownValue } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { optionError } from '../../runtime/option-errors.ts';
import type { ProxyOptions } from './options.ts';

type Cloud = 'aws' | 'azure' | 'gcp';
type Metadata = Record<string, string>;

interface MetadataRequest {
  readonly path: string;
  readonly method?: 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  readonly responseHeader?: readonly [name: string, value: string];
}

/** Rejects unless the status is 200. */
type MetadataQuery = (request: MetadataRequest, signal: AbortSignal) => Promise<string>;

export interface CloudSources {
  readonly query: MetadataQuery;
  readonly firmware: (name: string) => string;
}

/** `detected` is shorter: a pod in a detected cloud may have no access to the server. */
const limitMs = { configured: 5_000, detected: 1_000 } as const;
const maxResponseBytes = 1024 * 1024;
const maxValueLength = 1024;

/**
 * Without a response, warns and adds no metadata.
 *
 * @throws ChartpilotError FLAG_INVALID if CLOUD_PLATFORM is unknown
 */
export async function withCloudMetadata(
  options: ProxyOptions,
  { query, firmware }: CloudSources = { query: queryMetadataServer, firmware: readFirmware },
): Promise<ProxyOptions> {
  const configuredPlatform = options.env.CLOUD_PLATFORM ?? '';
  if (!/^(aws|azure|gcp|none|)$/.test(configuredPlatform)) {
    throw optionError('CLOUD_PLATFORM', unknownValue(['aws', 'azure', 'gcp', 'none'], configuredPlatform));
  }
  if (configuredPlatform === 'none' || options.platformMetadata !== undefined) return options;
  const cloud = configuredPlatform === '' ? cloudOf(firmware) : (configuredPlatform as Cloud);
  if (cloud === undefined) return options;
  try {
    const signal = AbortSignal.timeout(configuredPlatform === '' ? limitMs.detected : limitMs.configured);
    const platformMetadata = await metadataReaders[cloud](query, signal);
    return { ...options, platformMetadata };
  } catch (error) {
    const reason = messageOf(error);
    const warning: LogWarning = { event: 'option.cloudMetadataUnavailable', platform: cloud, reason };
    return { ...options, warnings: [...options.warnings, warning] };
  }
}

function cloudOf(firmware: CloudSources['firmware']): Cloud | undefined {
  const readField = (name: string): string => {
    try {
      return firmware(name);
    } catch {
      return '';
    }
  };
  if (readField('product_name').startsWith('Google')) return 'gcp';
  if (readField('sys_vendor').startsWith('Amazon EC2') || readField('bios_version').includes('amazon')) return 'aws';
  return readField('chassis_asset_tag').trim() === '7783-7084-3265-9085-8269-3286-77' ? 'azure' : undefined;
}

const metadataReaders: Readonly<Record<Cloud, (query: MetadataQuery, signal: AbortSignal) => Promise<Metadata>>> = {
  async gcp(query, signal) {
    const flavor = ['Metadata-Flavor', 'Google'] as const;
    const path = '/computeMetadata/v1/?recursive=true';
    const body = await query({ path, headers: { [flavor[0]]: flavor[1] }, responseHeader: flavor }, signal);
    // Quotes IDs that a JavaScript number would round.
    const { project, instance } = fieldsOf(body.replaceAll(/("id"\s*:\s*)(\d+)/g, '$1"$2"'));
    const { projectId, numericProjectId } = objectOf(project);
    const { id, name, zone, attributes } = objectOf(instance);
    const clusterAttributes = objectOf(attributes);
    const location =
      clusterAttributes['cluster-location'] ?? (typeof zone === 'string' ? zone.split('/').at(-1) : undefined);
    return texts({
      gcp_project: projectId,
      gcp_project_number: typeof numericProjectId === 'number' ? String(numericProjectId) : numericProjectId,
      gcp_location: location,
      gcp_gke_cluster_name: clusterAttributes['cluster-name'],
      gcp_gce_instance: name,
      gcp_gce_instance_id: id,
      gcp_gce_instance_template: clusterAttributes['instance-template'],
      gcp_gce_instance_created_by: clusterAttributes['created-by'],
    });
  },
  async aws(query, signal) {
    const ttl = { 'X-aws-ec2-metadata-token-ttl-seconds': '60' };
    // Older hosts have no token service.
    const token = await query({ method: 'PUT', path: '/latest/api/token', headers: ttl }, signal).catch(() => '');
    const headers = /^[\x21-\x7e]+$/.test(token) ? { 'X-aws-ec2-metadata-token': token } : {};
    const body = await query({ path: '/latest/dynamic/instance-identity/document', headers }, signal);
    const { region, availabilityZone, instanceId } = fieldsOf(body);
    return texts({ aws_region: region, aws_availability_zone: availabilityZone, aws_instance_id: instanceId });
  },
  async azure(query, signal) {
    const path = '/metadata/instance?api-version=2019-08-01';
    const { compute } = fieldsOf(await query({ path, headers: { Metadata: 'true' } }, signal));
    const { name, location, vmId, zone } = objectOf(compute);
    return texts({ azure_name: name, azure_location: location, azure_vm_id: vmId, azure_zone: zone });
  },
};

function fieldsOf(body: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(body);
  if (!isObject(value)) throw new Error('response is not a JSON object');
  return value;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

function texts(values: Readonly<Record<string, unknown>>): Metadata {
  return Object.fromEntries(
    Object.entries(values).filter(
      (entry): entry is [string, string] =>
        typeof entry[1] === 'string' && entry[1] !== '' && entry[1].length <= maxValueLength && entry[1].isWellFormed(),
    ),
  );
}

function readFirmware(name: string): string {
  return readFileSync(`/sys/class/dmi/id/${name}`, 'utf8');
}

/** Link-local address, the same in all three clouds. */
const metadataServer = { host: '169.254.169.254', port: 80 };

/** Does not follow redirects. */
export async function queryMetadataServer(
  { path, method, headers, responseHeader }: MetadataRequest,
  signal: AbortSignal,
  { host, port } = metadataServer,
): Promise<string> {
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const outgoing = request({ host, port, path, method: method ?? 'GET', headers, agent: false, signal }, resolve);
    rejectUpgrade(outgoing, reject);
    outgoing.once('error', (error) => reject(signal.aborted ? new Error('no response in time') : error));
    outgoing.end();
  });
  let length = 0;
  response.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > maxResponseBytes) response.destroy(new Error(`response exceeds ${maxResponseBytes} bytes`));
  });
  const body = await readText(response);
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}`);
  if (responseHeader !== undefined && response.headers[responseHeader[0].toLowerCase()] !== responseHeader[1]) {
    throw new Error(`${path}: response does not come from a metadata server`);
  }
  return body;
}

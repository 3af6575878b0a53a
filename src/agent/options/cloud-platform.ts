/**
 * What a cloud says of the machine that the proxy runs on (spec/agent.md §1.3, §5.1). Which cloud it is, is read off the machine itself:
 * asking all of them would hold up each start where there is none. Its answer is anybody's who has the link's address: it is bounded, and
 * nothing but named texts is taken of it.
 */

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { unknownValue } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import { refuseOtherProtocol } from '../../runtime/fences/other-protocol.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { optionError } from '../../runtime/option-errors.ts';
import type { ProxyOptions } from './options.ts';

type Cloud = 'aws' | 'azure' | 'gcp';
type Metadata = Record<string, string>;

interface Question {
  readonly path: string;
  readonly method?: 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  /** A header that only that cloud answers with. */
  readonly answersWith?: readonly [name: string, value: string];
}

/** Rejects when there is no answer, or none of status 200. */
type Ask = (question: Question, signal: AbortSignal) => Promise<string>;

export interface CloudSurroundings {
  readonly ask: Ask;
  /** Reads a text of the machine's firmware; throws where there is none. */
  readonly firmware: (name: string) => string;
}

/** Where somebody says which cloud it is; where it is found, a pod may be kept from asking, and is not to wait for that. */
const limitMs = { said: 5_000, found: 1_000 } as const;
const longestAnswer = 1024 * 1024;
const longestValue = 1024;

/**
 * The options with the metadata of the cloud. No response is a warning: the proxy runs without metadata.
 *
 * @throws ChartpilotError FLAG_INVALID if CLOUD_PLATFORM is unknown
 */
export async function withCloudMetadata(
  options: ProxyOptions,
  { ask, firmware }: CloudSurroundings = { ask: askMetadataServer, firmware: readFirmware },
): Promise<ProxyOptions> {
  const said = options.env.CLOUD_PLATFORM ?? '';
  if (!/^(aws|azure|gcp|none|)$/.test(said)) {
    throw optionError('CLOUD_PLATFORM', unknownValue(['aws', 'azure', 'gcp', 'none'], said));
  }
  if (said === 'none' || options.platformMetadata !== undefined) return options;
  const cloud = said === '' ? cloudOf(firmware) : (said as Cloud);
  if (cloud === undefined) return options;
  try {
    const signal = AbortSignal.timeout(said === '' ? limitMs.found : limitMs.said);
    const platformMetadata = await questions[cloud](ask, signal);
    return { ...options, platformMetadata };
  } catch (error) {
    const reason = messageOf(error);
    const warning: LogWarning = { event: 'option.cloudMetadataUnavailable', platform: cloud, reason };
    return { ...options, warnings: [...options.warnings, warning] };
  }
}

/** The cloud that the firmware names, by the words that its makers use. */
function cloudOf(firmware: CloudSurroundings['firmware']): Cloud | undefined {
  const read = (name: string): string => {
    try {
      return firmware(name);
    } catch {
      return '';
    }
  };
  if (read('product_name').startsWith('Google')) return 'gcp';
  if (read('sys_vendor').startsWith('Amazon EC2') || read('bios_version').includes('amazon')) return 'aws';
  return read('chassis_asset_tag').trim() === '7783-7084-3265-9085-8269-3286-77' ? 'azure' : undefined;
}

const questions: Readonly<Record<Cloud, (ask: Ask, signal: AbortSignal) => Promise<Metadata>>> = {
  async gcp(ask, signal) {
    const flavor = ['Metadata-Flavor', 'Google'] as const;
    const path = '/computeMetadata/v1/?recursive=true';
    const body = await ask({ path, headers: { [flavor[0]]: flavor[1] }, answersWith: flavor }, signal);
    // A number that Node would round.
    const { project, instance } = fieldsOf(body.replaceAll(/("id"\s*:\s*)(\d+)/g, '$1"$2"'));
    const { projectId, numericProjectId } = objectOf(project);
    const { id, name, zone, attributes } = objectOf(instance);
    const said = objectOf(attributes);
    const place = said['cluster-location'] ?? (typeof zone === 'string' ? zone.split('/').at(-1) : undefined);
    return texts({
      gcp_project: projectId,
      gcp_project_number: typeof numericProjectId === 'number' ? String(numericProjectId) : numericProjectId,
      gcp_location: place,
      gcp_gke_cluster_name: said['cluster-name'],
      gcp_gce_instance: name,
      gcp_gce_instance_id: id,
      gcp_gce_instance_template: said['instance-template'],
      gcp_gce_instance_created_by: said['created-by'],
    });
  },
  async aws(ask, signal) {
    const ttl = { 'X-aws-ec2-metadata-token-ttl-seconds': '60' };
    // Older machines know of no token.
    const token = await ask({ method: 'PUT', path: '/latest/api/token', headers: ttl }, signal).catch(() => '');
    const headers = /^[\x21-\x7e]+$/.test(token) ? { 'X-aws-ec2-metadata-token': token } : {};
    const body = await ask({ path: '/latest/dynamic/instance-identity/document', headers }, signal);
    const { region, availabilityZone, instanceId } = fieldsOf(body);
    return texts({ aws_region: region, aws_availability_zone: availabilityZone, aws_instance_id: instanceId });
  },
  async azure(ask, signal) {
    const path = '/metadata/instance?api-version=2019-08-01';
    const { compute } = fieldsOf(await ask({ path, headers: { Metadata: 'true' } }, signal));
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

/** What is nothing, no text, or longer than any name, is left out. */
function texts(values: Readonly<Record<string, unknown>>): Metadata {
  return Object.fromEntries(
    Object.entries(values).filter(
      (entry): entry is [string, string] =>
        typeof entry[1] === 'string' && entry[1] !== '' && entry[1].length <= longestValue && entry[1].isWellFormed(),
    ),
  );
}

function readFirmware(name: string): string {
  return readFileSync(`/sys/class/dmi/id/${name}`, 'utf8');
}

/** All three have it at the same address of the link. */
const metadataServer = { host: '169.254.169.254', port: 80 };

/** Asks a metadata server; redirects are not followed. */
export async function askMetadataServer(
  { path, method, headers, answersWith }: Question,
  signal: AbortSignal,
  { host, port } = metadataServer,
): Promise<string> {
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const outgoing = request({ host, port, path, method: method ?? 'GET', headers, agent: false, signal }, resolve);
    refuseOtherProtocol(outgoing, reject);
    outgoing.once('error', (error) => reject(signal.aborted ? new Error('no response in time') : error));
    outgoing.end();
  });
  let length = 0;
  response.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > longestAnswer) response.destroy(new Error(`response exceeds ${longestAnswer} bytes`));
  });
  const body = await readText(response);
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}`);
  if (answersWith !== undefined && response.headers[answersWith[0].toLowerCase()] !== answersWith[1]) {
    throw new Error(`${path}: response does not come from a metadata server`);
  }
  return body;
}
